// node run_wasi.mjs PROGRAM.wasm ARGUMENTS…: runs a program of the WebAssembly build, with our
// environment.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1", args: process.argv.slice(2), env: process.env, returnOnExit: true });
// The system's functions are called from JavaScript, not by the program itself: Node 20 enters them
// another way there, and some programs, which had done all their work, then ended in a crash of its
// interpreter with a stack that was off by four bytes.
const system = wasi.getImportObject().wasi_snapshot_preview1;
const called = Object.fromEntries(Object.entries(system).map(([name, f]) => [name, (...args) => f(...args)]));
const module = await WebAssembly.compile(await readFile(process.argv[2]));
const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: called });
process.exitCode = wasi.start(instance);
