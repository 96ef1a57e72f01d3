/* commands.c: the table of commands, with the texts of their help. */
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "expr/expr.h"
#include "trace/listing/listing.h"
#include "train/use.h"

#define EXPRESSION "EXPR name=value… [options]"

const command command_table[] = {
    {"eval", EXPRESSION, "the value of an expression", "Computes EXPR and prints its value.",
     "cotangent eval 'x*y + sin(x)' x=pi/4 y=3\n"
     "cotangent eval 'sum(W @ x)' W=[[1,2],[3,4]] x=[5,6]\n"
     "cotangent eval 'mean(W**2)' 'W=uniform(1, [128, 784], 0.5)'\n"
     "cotangent eval -f model.txt W=@weights.npy b=@model.safetensors:layer1.bias",
     OPT_EXPRESSION, run_eval},
    {"grad", EXPRESSION, "value and gradient",
     "Computes EXPR and its derivative by every float input, or by those of --wrt. A value of more than one "
     "element needs --seed, the weights of its elements; all derivatives of all elements are what jac gives. "
     "--mode forward finds the same numbers by forward sweeps, one for each element of the inputs. --rank lists "
     "the inputs, or their elements, in the order of how much the value depends on them instead: x/f*df/dx, the "
     "change of the value in percent if an input changes by one percent.",
     "cotangent grad 'x*y + sin(x)' x=pi/4 y=3\n"
     "cotangent grad 'sum((W @ x - t)**2)' W=[[1,2],[3,4]] x=[5,6] t=[1,1] --wrt W\n"
     "cotangent grad 'x**2' x=[1,2,3] --seed [1,0,0] --json\n"
     "cotangent grad --rank 'pi*r**4*dp/(8*mu*l)' r=0.01 dp=500 mu=0.001 l=2",
     OPT_EXPRESSION | OPT_WRT | OPT_SEED | OPT_MODE | OPT_RANK, run_grad},
    {"vjp", EXPRESSION, "a seed times the Jacobian (reverse mode)",
     "The vector-Jacobian product: --seed, of the value's shape, times the derivative of the value by each input. One "
     "reverse "
     "sweep.",
     "cotangent vjp 'W @ x' W=[[1,2],[3,4]] x=[5,6] --seed [1,-1]", OPT_EXPRESSION | OPT_WRT | OPT_SEED, run_grad},
    {"jvp", EXPRESSION, "the Jacobian times a tangent (forward mode)",
     "The derivative d/ds of the value along a direction: each input of --along name=V moves by s times its V, and the "
     "others do not. One forward sweep.",
     "cotangent jvp 'x*y + sin(x)' x=pi/4 y=3 --along x=1\n"
     "cotangent jvp 'W @ x' W=[[1,2],[3,4]] x=[5,6] --along x=[1,0] --along W=[[0,1],[0,0]]",
     OPT_EXPRESSION | OPT_TANGENT, run_jvp},
    {"hvp", EXPRESSION, "the Hessian times a tangent",
     "The derivative of the gradient along a direction, given by --along as for jvp: d²/dx ds for each input x. EXPR "
     "has a value of one element.",
     "cotangent hvp 'sum(x**3)' x=[1,2,3] --along x=[1,0,0]", OPT_EXPRESSION | OPT_WRT | OPT_TANGENT, run_hvp},
    {"taylor", EXPRESSION, "all derivatives along a direction, up to an order",
     "The derivatives of the value by s, at s = 0, of the orders 1 to --order, where each input of --along moves by s "
     "times its V, and the others do "
     "not. One forward sweep for all orders. Without --along an only input of one element moves by s.",
     "cotangent taylor 'exp(sin(x))' x=0 --order 10\n"
     "cotangent taylor 'x*y + sin(x)' x=pi/4 y=3 --order 4 --along x=1 --along y=-2 --json",
     OPT_EXPRESSION | OPT_ORDER, run_taylor},
    {"jac", EXPRESSION, "the whole Jacobian",
     "Every derivative of every element of the value: for each input an array of the value's shape followed by the "
     "input's. "
     "Reverse mode takes one sweep for each output, forward mode one for each input; the fewer are taken, and said, "
     "unless "
     "--mode asks for one. With --sparse only the entries that can be other than zero are computed and listed, as row "
     "(element of the value), "
     "column (element of the input) and derivative; columns or rows that do not meet share a sweep, so it takes as "
     "many as there are colours.",
     "cotangent jac 'tanh(W @ x)' W=[[1,2],[3,4]] x=[0.5,0.6]\n"
     "cotangent jac 'x**2' x=[1,2,3] --mode forward --json\n"
     "cotangent jac --sparse 'x[1:]**2 - x[:-1]' x=[1,2,3,4]",
     OPT_EXPRESSION | OPT_WRT | OPT_MODE | OPT_SPARSE, run_jac},
    {"hess", EXPRESSION, "the whole Hessian",
     "The second derivatives of a value of one element, for each pair of inputs: the gradient is recorded, then "
     "differentiated by forward sweeps, one for each element of the inputs (with --mode reverse: by reverse sweeps). "
     "With --sparse "
     "only the entries that can be other than zero are computed, by one sweep for each colour, and listed as row, "
     "column and derivative; rows and "
     "columns count the elements of all inputs in turn.",
     "cotangent hess 'x**2*y + sin(y)' x=2 y=1\n"
     "cotangent hess '100*(y - x**2)**2 + (1 - x)**2' x=1 y=1 --json\n"
     "cotangent hess --sparse 'sum((x[1:] - x[:-1]**2)**2)' x=[1,2,3,4]",
     OPT_EXPRESSION | OPT_WRT | OPT_MODE | OPT_SPARSE, run_hess},
    {"trace", EXPRESSION, "the tape forward and the sweep backward, step by step",
     "The forward tape as a table: node, operation, value; then the reverse sweep: for each node the rule that is "
     "applied, "
     "what it adds to whom, and the adjoints so far. --step walks through both in the terminal, forward, backward and "
     "by "
     "jumps, and lets inputs be changed on the way (its key ? lists the keys). --html writes a page that steps through "
     "both, --dot a graph for "
     "Graphviz; the file - is the standard output. --c prints a C program: the calls of the library, and the sweep "
     "written out.",
     "cotangent trace 'x*y + sin(x)' x=pi/4 y=3\n"
     "cotangent trace 'x*y + sin(x)' x=pi/4 y=3 --mode forward\n"
     "cotangent trace --step 'x*y + sin(x)' x=pi/4 y=3\n"
     "cotangent trace --c 'x*y + sin(x)' x=pi/4 y=3 > trace.c\n"
     "cotangent trace 'x*y + sin(x)' x=pi/4 y=3 --html trace.html\n"
     "cotangent trace 'sigmoid(w*x + b)' w=2 x=1 b=-1 --dot - | dot -Tsvg > trace.svg",
     OPT_EXPRESSION | OPT_WRT | OPT_SEED | OPT_MODE | OPT_TRACE, run_trace},
    {"check", EXPRESSION, "the derivatives against finite differences",
     "Compares forward mode with central differences, reverse mode with forward mode, and both again on the gradient, "
     "in f64 "
     "along random directions. Exit status 1 when they disagree.",
     "cotangent check 'logsumexp(x*y)' x=[1,2,3] y=0.5\n"
     "cotangent check 'relu(x)' x=0     # a kink: they disagree",
     OPT_EXPRESSION | OPT_WRT, run_check},
    {"cost", "[EXPR name=value… | --inputs N --outputs M | --depth N] [options]", "what forward and reverse mode cost",
     "Operations, sweeps and memory of the whole derivative in forward and in reverse mode, for this function or for "
     "any "
     "function of these sizes: which is cheaper, and at how many outputs they cross. With --depth, for a loop or a "
     "network of "
     "so many equal steps, what the way back keeps and runs again: plainly, with a state kept at every √depth-th step, "
     "with "
     "the binomial schedule that loops have, and one part of the batch at a time.",
     "cotangent cost 'sum(tanh(W @ x))' 'W=uniform(1, [32, 64], 1)' 'x=uniform(2, [64], 1)'\n"
     "cotangent cost --inputs 1000000 --outputs 1\n"
     "cotangent cost --depth 1000 --width 512 --batch 64 --states 10",
     OPT_EXPRESSION | OPT_WRT | OPT_SIZES, run_cost},
    {"memory", "[EXPR name=value… | --model NAME] [options]", "what a step would take, before it is run",
     "Bytes of the values and adjoints of EXPR and its gradient, or of a training step of a model, over time: what is "
     "stored, by operation, which rules read it, how many operations would make it again, the most at once and when. "
     "From shapes alone: a model of any size is answered at once. Exit status 1 when a --limit is not enough.",
     "cotangent memory 'sum(tanh(W @ x))' 'W=uniform(1, [32, 64], 1)' 'x=uniform(2, [64], 1)'\n"
     "cotangent memory --model gpt --layers 100 --batch 32 --context 2048 --width 4096\n"
     "cotangent memory --model mnist --batch 1024 --limit 100MiB --svg memory.svg",
     OPT_EXPRESSION | OPT_WRT | OPT_MEMORY, run_memory},
    {"explain", EXPRESSION, "where a NaN, infinity or zero gradient comes from",
     "Says which operation made a value NaN or infinite, or a gradient zero, NaN or infinite, with its operands; and "
     "on which kinks the point sits and what is taken as the derivative there. For each it offers what helps.",
     "cotangent explain 'log(x - x) * 0' x=2\n"
     "cotangent explain 'where(x > 0, log(x), 0)' x=0",
     OPT_EXPRESSION, run_explain},
    {"fit", "EXPR DATA name=start… [options]", "parameters of an expression from data, by least squares",
     "Finds the parameters, the names given with a start, that make the sum of squared differences between EXPR and "
     "the column y least "
     "(Levenberg-Marquardt on exact Jacobians), with their standard errors and 95 % confidence intervals. Digits are "
     "those that the errors justify; --json has all. The other names of EXPR are columns of "
     "DATA: by their names in its "
     "first line, or x or x1, x2, … in the order of those beside y. DATA is a CSV file (cells between commas, "
     "semicolons, tabs or blanks; "
     "without names the first column is y), a .dat file of NIST's reference data sets, or - for the standard input. "
     "Exit status 1 when the data "
     "are not finite or too few, parameters are not determined, or it does not converge.",
     "cotangent fit 'a*exp(-k*x)' decay.csv a=1 k=0.1\n"
     "cotangent fit 'top/(1 + exp(-(t - t0)/w))' growth.csv top=10 t0=3 w=1 --y height --plot growth.svg\n"
     "cotangent fit 'b1*(1 - exp(-b2*x))' Misra1a.dat b1=500 b2=0.0001 --json\n"
     "cotangent fit 'a*x1 + b*x2 + c' - a=0 b=0 c=0 < plane.txt",
     OPT_FIT, run_fit},
    {"plot", "RUN… [options]", "the curves of training runs, from their files of JSON lines",
     "Draws the losses of a run, or the numbers of --y, against its steps: in the terminal, or as a picture with "
     "--svg. A RUN is a file of JSON lines, one object for each step or evaluation, with a \"step\", the "
     "\"seconds\" so far and numbers by name. It may still be written: a last line that is not whole is left out, "
     "and --follow draws again until the run ends. Several runs share the axes.",
     "cotangent plot run.jsonl\n"
     "cotangent plot run.jsonl --y loss,test/loss --log --smooth 50 --svg loss.svg\n"
     "cotangent plot adam/run.jsonl sgd/run.jsonl --y test/accuracy --x seconds\n"
     "cotangent plot run.jsonl --follow",
     OPT_PLOT, run_plot},
    {"compile", EXPRESSION, "an expression and a derivative as self-contained C",
     "Prints a C99 function of the names of EXPR that computes its value and, if asked, one kind of derivative: a file "
     "that needs no library, takes no memory and has the bits of this command (in Jacobians but for the sign of "
     "zeros). The values tell shapes and dtypes; with "
     "--main they are also where a main evaluates the function, which prints what the command of the derivative prints "
     "with --json, but for notes. With -o f.c the function is called f, and f.h declares it; without, the standard "
     "output has both. "
     "Tangents (--jvp, --hvp) and the seed (--vjp) are inputs of the function; --along name=V and --seed give them "
     "shapes and, for --main, values. With --jac --sparse or --hess --sparse it computes only the entries that can be "
     "other than zero, and row starts and columns stand beside it as constant arrays. "
     "The function is for all values, so a choice by values is written where(c, a, b), not a if c else b. "
     "--print, --report and --dot show the program that the C is made from instead. With --model DIR it is the "
     "network that `train --checkpoint DIR` left, its parameters constants of the file: of mnist, a "
     "picture to logits; of "
     "gpt, as many tokens as its context to the logits of the next. With --training-step it is the step that trains "
     "it: weights, states of the optimiser, rate, number of the step and a batch to the loss, the gradient, and the "
     "new weights and states, all of them arrays of the caller.",
     "cotangent compile 'l1*cos(q1) + l2*cos(q1 + q2)' q1=0.5 q2=0.25 l1=1 l2=0.7 --grad --wrt q1,q2 -o arm.c\n"
     "cotangent compile 'tanh(W @ x)' W=[[1,2],[3,4]] x=[0.5,0.6] --jac --main -o net.c && cc net.c -lm && ./a.out\n"
     "cotangent compile --model run -o digits.c\n"
     "cotangent compile --model run --training-step --batch 32 -o learn.c",
     OPT_EXPRESSION | OPT_WRT | OPT_SEED | OPT_SPARSE | OPT_COMPILE, run_compile},
    {"train", "MODEL [options]", "a model trained, saved, resumed, tested",
     "Trains gcn (a graph network: --data karate, generated, or a folder with edges.npy, features_indptr.npy, "
     "features_indices.npy, labels.npy, train.npy, val.npy and test.npy; it stops early when the loss of the "
     "validation nodes rises), mnist (a convolutional network: --data a folder with t10k-images-idx3-ubyte and "
     "t10k-labels-idx1-ubyte, and perhaps those of train, gzipped or not), gpt (a transformer: --data a text, "
     "or tokens of two bytes in a .bin file) or ode (the rates of predators and prey: --data a table of time, "
     "prey, predators) and tests it. Several --seeds give means over the runs, and deviations of the tests; the "
     "log is that of the first. With --checkpoint DIR the run is saved there every --every steps and at Ctrl-C, "
     "to be resumed by --resume DIR with the same options and the same bits, and DIR/model.safetensors is "
     "written at the end. A loss that is not a number ends the run, which says where it comes from. With --memory "
     "values are computed again where they do not fit, and the model is the same to the bit.",
     "cotangent train gcn\n"
     "cotangent train gcn --data cora --seeds 20 --json\n"
     "cotangent train mnist --data mnist --checkpoint run --log run.jsonl\n"
     "cotangent train gpt --data book.txt --layers 4 --width 128 --steps 2000 --checkpoint run\n"
     "cotangent train gpt --data book.txt --context 512 --memory 30%",
     OPT_TRAIN, run_train},
    {"sample", "DIR [options]", "a text that a trained transformer goes on with",
     "Draws --length tokens behind --prompt from the gpt in DIR, which `train gpt --checkpoint DIR` "
     "wrote, or from GPT-2 in "
     "Hugging Face's files (model.safetensors, vocab.json, merges.txt). The same --seed gives the same "
     "text. Tokens see "
     "the context of the model; beyond it, drawing goes on from the last half.",
     "cotangent sample run --prompt 'Once ' --length 300\n"
     "cotangent sample run --prompt 'Once ' --temperature 0\n"
     "cotangent sample run --temperature 0.8 --top-p 0.9 --seed 7 --json",
     OPT_SAMPLE, run_sample},
    {"predict", "DIR INPUT [options]", "what a trained model says of new data",
     "Runs the model in DIR, which `train --checkpoint DIR` wrote, on INPUT. mnist: an IDX or .npy file of "
     "pictures of 28 x 28 pixels, integers from 0 to 255 or numbers from 0 to 1; the digit and its probability "
     "for each. gcn: a graph as for train; the class of each node. gpt: a text; the loss of a token (with --json "
     "of every token), and the perplexity.",
     "cotangent predict run t10k-images-idx3-ubyte\n"
     "cotangent predict run karate --json\n"
     "cotangent predict run letter.txt",
     OPT_PREDICT, run_predict},
    {"ops", "[NAME] [options]", "the operations and their derivatives",
     "Every operation: its value, its partial derivatives or transposes as formulas, its domain, and what is taken "
     "where "
     "there is no derivative. With a NAME, that one in full.",
     "cotangent ops\n"
     "cotangent ops matmul\n"
     "cotangent ops relu --json",
     OPT_NAMES, run_ops},
    {"help", "[COMMAND | expressions]", "help on a command, or on expressions",
     "Prints the help of a command, the language of expressions on a page, or the list of commands.",
     "cotangent help grad\ncotangent help expressions", 0, run_help},
};
const int command_count = sizeof command_table / sizeof *command_table;

const command *command_find(const char *name, failure *f) {
    const char *names[sizeof command_table / sizeof *command_table];
    for (int i = 0; i < command_count; i++) {
        if (strcmp(command_table[i].name, name) == 0) return &command_table[i];
        names[i] = command_table[i].name;
    }
    const char *near = cot__nearest(name, command_count, names);
    if (near) failure_usage(f, "there is no command %.100s; did you mean %s?", name, near);
    else failure_usage(f, "there is no command %.100s; `cotangent --help` lists them", name);
    return NULL;
}

static bool is_known_here(const char *name, size_t length) {
    char word[80];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    for (int k = 0; k < command_count; k++)
        if (strcmp(command_table[k].name, word) == 0) return true;
    return cot__listing_find(word) >= 0;
}

void command_speak(failure *f, const command *typed) {
    static const char folder[] = "; operations and adjoints may lie in files of a folder, cot_options.spill";
    char              text[sizeof f->message], *at = f->message, *end = strstr(at, folder);
    if (end) memmove(end, end + sizeof folder - 1, strlen(end + sizeof folder - 1) + 1);
    /* the first bracket only: a path may begin with the next one */
    if (*at != '[' || !(end = strstr(at, "] ")) || is_known_here(at + 1, (size_t)(end - at - 1))) return;
    snprintf(text, sizeof text, "%s", end + 2);
    cot__format(f->message, sizeof f->message, "[%s] %s", typed->name, text);
}
