import { createCompiler, type Compiler } from '../ptx/compile/index.js';
import { type Benchmark, rateOf, secondsOf } from './benchmark.js';
import { normalValues } from './normal-problem.js';
import { softmaxStretch } from './softmax-operations.js';

const pageBytes = 65536;
const tablePages = 8;
const warpLanes = 32;
const warps = 8;
const warpRuns = 20_000;
const quickWarpRuns = 100;

/** A memory with registers of some warps at its beginning, and a compiler whose tables lie behind them. */
function createWarps(registerBytes: number): { memory: WebAssembly.Memory; compiler: Compiler } {
  const registerPages = Math.ceil(registerBytes / pageBytes);
  const memory = new WebAssembly.Memory({ initial: registerPages + tablePages });
  let next = registerPages * pageBytes;
  const place = (table: ArrayBufferView): number => {
    const address = next;
    const bytes = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
    new Uint8Array(memory.buffer).set(bytes, address);
    next = Math.ceil((next + bytes.length) / 16) * 16;
    return address;
  };
  return { memory, compiler: createCompiler(memory, place) };
}

/** The softmax part, with every call and every load and store of registers. */
const softmaxBenchmark: Benchmark = {
  quantities: [{ name: 'ptx softmax', unit: 'lane-instructions/s', better: 'higher', target: 3e8 }],
  prepare: (quick) => {
    const { operations, inputs, bytes } = softmaxStretch();
    const { memory, compiler } = createWarps(warps * bytes);
    const run = compiler.compile(operations);
    const floats = new Float32Array(memory.buffer);
    for (let warp = 0; warp < warps; warp++)
      inputs.forEach(({ offset }, i) =>
        floats.set(normalValues(warpLanes, i + 1), (warp * bytes + offset) / 4),
      );
    const runs = quick ? quickWarpRuns : warpRuns;
    const allLanes = -1;
    return rateOf(runs * operations.length * warpLanes, () => {
      for (let i = 0; i < runs; i++) run((i % warps) * bytes, allLanes);
    });
  },
};

const stretches = 12;

/** Compilation of as much as a kernel of 3,000 lines, with a compiler that has seen nothing. */
const compilationBenchmark: Benchmark = {
  quantities: [{ name: 'ptx: compile 3,000 operations', unit: 's', better: 'lower', target: 0.05 }],
  prepare: () => {
    const { operations, bytes } = softmaxStretch();
    const all = Array.from({ length: stretches }, () => operations);
    return {
      measure: () => [secondsOf(() => void createWarps(bytes).compiler.compileAll(all))],
    };
  },
};

/** Benchmarks of compiled kernels: stretches of instructions on registers in WebAssembly. */
export const ptxBenchmarks: readonly Benchmark[] = [softmaxBenchmark, compilationBenchmark];
