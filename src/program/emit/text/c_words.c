/* c_words.c: see c_words.h. */
#include "program/emit/text/c_words.h"

#include <string.h>

/* Blanks between words; in pieces, as no string of C may have more than 4095 letters. */
static const char *const words[] = {
    /* keywords */
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while",
    /* of C++ and later Cs */
    "asm bool catch char8_t char16_t char32_t class co_await co_return co_yield concept const_cast "
    "consteval constexpr constinit decltype delete dynamic_cast explicit export false friend mutable "
    "namespace new noexcept nullptr operator private protected public reinterpret_cast requires "
    "static_cast template this throw true try typeid typename using virtual wchar_t alignas alignof "
    "thread_local typeof typeof_unqual static_assert and and_eq bitand bitor compl not not_eq or or_eq "
    "xor xor_eq",
    /* types */
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t "
    "uintmax_t size_t ptrdiff_t va_list FILE",
    /* macros of headers, and of compilers */
    "errno math_errhandling stdin stdout stderr complex imaginary I NULL NAN INFINITY isfinite isnan "
    "isinf signbit assert offsetof L_tmpnam L_ctermid P_tmpdir unix linux i386 BUFSIZ CMPLX CMPLXF CMPLXL "
    "EOF MINSIGSTKSZ NFDBITS NGREG NSIG SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP "
    "SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV "
    "SIGSTKFLT SIGSTKSZ SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 "
    "SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ WCONTINUED WEOF WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED "
    "WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED",
    /* <errno.h> */
    "E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG "
    "EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED "
    "ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN "
    "EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED "
    "EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN "
    "ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET "
    "ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK "
    "ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN "
    "ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP "
    "EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG "
    "EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE "
    "ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL",
    /* what the file calls, and its last parameter */
    "fabs fabsf sqrt sqrtf floor floorf ceil ceilf rint rintf trunc truncf copysign copysignf fma fmaf "
    "frexp ldexp lgamma lgammaf exp expf exp2 exp2f expm1 expm1f log logf log2 log2f log10 log10f log1p "
    "log1pf sin sinf cos cosf tan tanf asin asinf acos acosf atan atanf sinh sinhf cosh coshf tanh tanhf "
    "asinh asinhf acosh acoshf atanh atanhf erf erff erfc erfcf cbrt cbrtf pow powf atan2 atan2f hypot "
    "hypotf fmod fmodf workspace main",
    NULL};

static const char *const functions[] = {
    /* <math.h> */
    "acoshl acosl asinhl asinl atan2l atanhl atanl cbrtl ceill copysignl coshl cosl drem dremf dreml "
    "erfcl erfl exp2l expl expm1l fabsl fdim fdimf fdiml finite finitef finitel floorl fmal fmax fmaxf "
    "fmaxl fmin fminf fminl fmodl fpclassify frexpf frexpl gamma gammaf gammal hypotl ilogb ilogbf ilogbl "
    "isgreater isgreaterequal isinff isinfl isless islessequal islessgreater isnanf isnanl isnormal "
    "isunordered j0 j0f j0l j1 j1f j1l jn jnf jnl ldexpf ldexpl lgammal llrint llrintf llrintl llround "
    "llroundf llroundl log10l log1pl log2l logb logbf logbl logl lrint lrintf lrintl lround lroundf "
    "lroundl modf modff modfl nan nanf nanl nearbyint nearbyintf nearbyintl nextafter nextafterf "
    "nextafterl nexttoward nexttowardf nexttowardl powl remainder remainderf remainderl remquo remquof "
    "remquol rintl round roundf roundl scalb scalbf scalbl scalbln scalblnf scalblnl scalbn scalbnf "
    "scalbnl significand significandf significandl sinhl sinl sqrtl tanhl tanl tgamma tgammaf tgammal "
    "truncl y0 y0f y0l y1 y1f y1l yn ynf ynl",
    /* <complex.h> */
    "cabs cabsf cabsl cacos cacosf cacosh cacoshf cacoshl cacosl carg cargf cargl casin casinf casinh "
    "casinhf casinhl casinl catan catanf catanh catanhf catanhl catanl ccos ccosf ccosh ccoshf ccoshl "
    "ccosl cexp cexpf cexpl cimag cimagf cimagl clog clogf clogl conj conjf conjl cpow cpowf cpowl cproj "
    "cprojf cprojl creal crealf creall csin csinf csinh csinhf csinhl csinl csqrt csqrtf csqrtl ctan "
    "ctanf ctanh ctanhf ctanhl ctanl",
    /* <stdio.h> */
    "clearerr ctermid dprintf fclose fdopen feof ferror fflush fgetc fgetpos fgets fileno flockfile "
    "fmemopen fopen fprintf fputc fputs fread freopen fscanf fseek fseeko fsetpos ftell ftello "
    "ftrylockfile funlockfile fwrite getc getchar getdelim getline gets getw open_memstream pclose perror "
    "popen printf putc putchar puts putw remove rename renameat rewind scanf setbuf setbuffer setlinebuf "
    "setvbuf snprintf sprintf sscanf tempnam tmpfile tmpnam ungetc vdprintf vfprintf vfscanf vprintf "
    "vscanf vsnprintf vsprintf vsscanf",
    /* <stdlib.h> */
    "a64l abort abs aligned_alloc alloca arc4random arc4random_buf arc4random_uniform at_quick_exit "
    "atexit atof atoi atol atoll bsearch calloc clearenv div drand48 ecvt erand48 exit fcvt free gcvt "
    "getenv getloadavg getsubopt initstate jrand48 l64a labs lcong48 ldiv llabs lldiv lrand48 malloc "
    "mblen mbstowcs mbtowc mkdtemp mkstemp mkstemps mktemp mrand48 nrand48 on_exit posix_memalign pselect "
    "putenv qecvt qfcvt qgcvt qsort quick_exit rand random realloc reallocarray realpath rpmatch seed48 "
    "select setenv setstate srand srand48 srandom strtod strtof strtol strtold strtoll strtoq strtoul "
    "strtoull strtouq system unsetenv valloc wcstombs wctomb",
    /* <string.h> */
    "bcmp bcopy bzero explicit_bzero ffs ffsl ffsll index memccpy memchr memcmp memcpy memmove memset "
    "rindex stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen "
    "strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr "
    "strtok strxfrm",
    /* <ctype.h> */
    "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit "
    "tolower toupper",
    /* <wchar.h> */
    "btowc fgetwc fgetws fputwc fputws fwide fwprintf fwscanf getwc getwchar mbrlen mbrtowc mbsinit "
    "mbsrtowcs putwc putwchar swprintf swscanf ungetwc vfwprintf vfwscanf vswprintf vswscanf vwprintf "
    "vwscanf wcrtomb wcscat wcschr wcscmp wcscoll wcscpy wcscspn wcsftime wcslen wcsncat wcsncmp wcsncpy "
    "wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstok wcstol wcstold wcstoll wcstoul wcstoull "
    "wcsxfrm wctob wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf",
    /* <wctype.h> */
    "iswalnum iswalpha iswblank iswcntrl iswctype iswdigit iswgraph iswlower iswprint iswpunct iswspace "
    "iswupper iswxdigit towctrans towlower towupper wctrans wctype",
    /* <inttypes.h> */
    "imaxabs imaxdiv strtoimax strtoumax wcstoimax wcstoumax",
    /* <fenv.h> */
    "feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept fesetenv "
    "fesetexceptflag fesetround fetestexcept feupdateenv",
    /* <time.h> */
    "asctime clock ctime difftime gmtime localtime mktime strftime time",
    /* <signal.h> */
    "raise signal",
    /* <setjmp.h> */
    "longjmp setjmp sigsetjmp",
    /* <locale.h> */
    "localeconv setlocale",
    /* <stdarg.h> */
    "va_arg va_copy va_end va_start",
    /* types and variables */
    "clock_t daylight div_t double_t environ fd_set fenv_t fexcept_t float_t fpos_t id_t imaxdiv_t "
    "int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t "
    "int_least8_t jmp_buf ldiv_t lldiv_t locale_t mbstate_t off_t pid_t sig_atomic_t sigjmp_buf signgam "
    "sigset_t ssize_t suseconds_t time_t timezone tzname uint uint_fast16_t uint_fast32_t uint_fast64_t "
    "uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t ulong ushort wctrans_t "
    "wctype_t wint_t",
    /* macros that some headers have */
    "max min",
    NULL};

static bool is_in(const char *name, const char *const *list) {
    size_t n = strlen(name);
    for (; n > 0 && *list; list++)
        for (const char *s = strstr(*list, name); s; s = strstr(s + 1, name))
            if ((s == *list || s[-1] == ' ') && (s[n] == ' ' || s[n] == 0)) return true;
    return false;
}

/* Capitals around an underscore may be a macro of a header (DBL_MAX, M_PI, INT64_MAX), or the
 * file's own; PRId64 and SCNu8 are of <inttypes.h>. */
static bool is_like_a_macro(const char *name) {
    bool underscore = false;
    if (strncmp(name, "PRI", 3) == 0 || strncmp(name, "SCN", 3) == 0)
        if (name[3] && strchr("dioxuX", name[3])) return true;
    for (; *name; name++) {
        if (*name >= 'a' && *name <= 'z') return false;
        underscore |= *name == '_';
    }
    return underscore;
}

bool cot__is_word_of_c(const char *name) { return is_in(name, words) || is_like_a_macro(name); }
bool cot__is_function_of_c(const char *name) { return is_in(name, functions); }
