// node run_wasi.mjs PROGRAM.wasm [ARGUMENTS]: runs a program that needs arguments, a clock and
// somewhere to print, and no files. Its status is the program's.
// Not by node:wasi, which is experimental: node 20 crashes there at the end of a long program.
import { readFileSync, writeSync } from 'node:fs';

const kNoSuchDescriptor = 8;  // every other call answers this
const program = process.argv[2];
const words = process.argv.slice(2).map((word) => Buffer.from(`${word}\0`));
const module = new WebAssembly.Module(readFileSync(program));
let memory;  // its buffer is another one each time it grows
const view = () => new DataView(memory.buffer);
const bytes = (at, size) => new Uint8Array(memory.buffer, at, size);

function write_sizes(count, size, list) {
  view().setUint32(count, list.length, true);
  view().setUint32(size, list.reduce((sum, item) => sum + item.length, 0), true);
  return 0;
}

const calls = {
  args_sizes_get: (count, size) => write_sizes(count, size, words),
  args_get(pointers, at) {
    words.forEach((word, i) => {
      view().setUint32(pointers + 4 * i, at, true);
      bytes(at, word.length).set(word);
      at += word.length;
    });
    return 0;
  },
  environ_sizes_get: (count, size) => write_sizes(count, size, []),
  environ_get: () => 0,
  clock_time_get(clock, precision, at) {
    view().setBigUint64(at, process.hrtime.bigint(), true);
    return 0;
  },
  fd_write(descriptor, pieces, count, written) {
    let sum = 0;
    for (let i = 0; i < count; ++i) {
      const at = view().getUint32(pieces + 8 * i, true);
      const size = view().getUint32(pieces + 8 * i + 4, true);
      for (let done = 0; done < size;) done += writeSync(descriptor, bytes(at + done, size - done));
      sum += size;
    }
    view().setUint32(written, sum, true);
    return 0;
  },
  proc_exit: (status) => process.exit(status),
};
for (const { name } of WebAssembly.Module.imports(module)) calls[name] ??= () => kNoSuchDescriptor;

const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: calls });
memory = instance.exports.memory;
instance.exports._start();
