// wasi.js: the few system calls the module imports. A program that reads its arguments, writes two
// streams and exits; no files, nothing to read.

// Runs the module's _start with these arguments; {status, out, err}. Each call is a new process
// with memory of its own. The function uses nothing from outside itself, because its text also
// travels into a worker.
export function runModule(module, args) {
  const ok = 0, badFile = 8, notFound = 44, notSupported = 52;
  class Exit {
    constructor(status) { this.status = status; }
  }
  const encoder = new TextEncoder(), streams = { 1: [], 2: [] };
  const argv = args.map(a => encoder.encode(a + "\0"));
  let memory;
  const view = () => new DataView(memory.buffer);

  function strings(list, pointers, bytes) {
    for (const text of list) {
      view().setUint32(pointers, bytes, true);
      new Uint8Array(memory.buffer).set(text, bytes);
      pointers += 4;
      bytes += text.length;
    }
    return ok;
  }
  function sizes(list, count, bytes) {
    view().setUint32(count, list.length, true);
    view().setUint32(bytes, list.reduce((n, text) => n + text.length, 0), true);
    return ok;
  }

  const calls = {
    args_get: (pointers, bytes) => strings(argv, pointers, bytes),
    args_sizes_get: (count, bytes) => sizes(argv, count, bytes),
    environ_get: (pointers, bytes) => strings([], pointers, bytes),
    environ_sizes_get: (count, bytes) => sizes([], count, bytes),
    fd_write(fd, vectors, count, written) {
      if (!streams[fd]) return badFile;
      let total = 0;
      for (let i = 0; i < count; i++) {
        const start = view().getUint32(vectors + 8 * i, true), length = view().getUint32(vectors + 8 * i + 4, true);
        streams[fd].push(new Uint8Array(memory.buffer).slice(start, start + length));
        total += length;
      }
      view().setUint32(written, total, true);
      return ok;
    },
    fd_read(fd, vectors, count, read) {
      if (fd !== 0) return badFile;
      view().setUint32(read, 0, true); // an empty standard input
      return ok;
    },
    fd_fdstat_get(fd, stat) {
      if (fd > 2) return badFile;
      new Uint8Array(memory.buffer).fill(0, stat, stat + 24);
      view().setUint8(stat, 2); // a character device
      return ok;
    },
    fd_prestat_get: () => badFile, // no folders
    fd_close: () => ok,
    clock_time_get(id, precision, time) {
      view().setBigUint64(time, BigInt(Math.round(Date.now() * 1e6)), true);
      return ok;
    },
    random_get(start, length) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, start, length));
      return ok;
    },
    path_open: () => notFound,
    proc_exit(status) { throw new Exit(status); },
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = calls[name] ?? (() => notSupported);
  }

  const instance = new WebAssembly.Instance(module, imports);
  memory = instance.exports.memory;
  let status = 0;
  try {
    instance.exports._start();
  } catch (e) {
    if (!(e instanceof Exit)) throw e;
    status = e.status;
  }
  const text = stream => {
    const decoder = new TextDecoder();
    return streams[stream].map(piece => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
  };
  return { status, out: text(1), err: text(2) };
}
