import { createCompiler, type Compiler } from '../ptx/compile/index.js';
import { findLaneInstruction } from '../ptx/instructions/index.js';
import type { Constant, LaneOperation, Slot, Source } from '../ptx/program/index.js';
import { rateOf, secondsOf, type Benchmark } from './benchmark.js';
import { normalValues } from './normal-problem.js';

const slotBytes = 128;

/** An allocator of registers of a warp, and the operations written so far. */
interface Program {
  readonly operations: LaneOperation[];
  readonly register: (width: Slot['width']) => Slot;
  /** Bytes of the registers so far. */
  readonly bytes: () => number;
}

function createProgram(): Program {
  const operations: LaneOperation[] = [];
  let next = 0;
  return {
    operations,
    register: (width) => {
      const slot = { offset: next, width };
      next += slotBytes;
      return slot;
    },
    bytes: () => next,
  };
}

/** Appends an instruction and gives the new register that it writes. */
function append({ operations, register }: Program, name: string, ...sources: Source[]): Slot {
  const [opcode, ...modifiers] = name.split('.');
  const instruction = findLaneInstruction(opcode, modifiers);
  if (instruction === null) throw new Error(`no lane instruction ${name}`);
  const destination = register(instruction.destinations[0]);
  operations.push({
    instruction,
    guard: null,
    destinations: [destination],
    sources,
    line: operations.length + 1,
  });
  return destination;
}

function float32(bits: number): Constant {
  return { bits: BigInt(bits), width: 32 };
}

/** A stretch of a kernel, and the places of its registers. */
interface Stretch {
  readonly operations: readonly LaneOperation[];
  /** Registers with fp32 numbers that it reads. */
  readonly inputs: readonly Slot[];
  /** Bytes that the registers of a warp take. */
  readonly bytes: number;
}

/**
 * The softmax part of a tile with the instructions that Triton 3.6 writes for sm_90: 32 scores a lane are scaled, masked
 * and reduced to their maximum; then come exponentials, their sum, pairs of them in bf16, and 32 accumulators that are
 * rescaled. Exchanges between lanes are left out.
 */
function softmaxStretch(): Stretch {
  const program = createProgram();
  const count = 32;
  const scores = Array.from({ length: count }, () => program.register(32));
  const accumulators = Array.from({ length: count }, () => program.register(32));
  const [oldMaximum, key, bound] = [0, 1, 2].map(() => program.register(32));
  const scale = float32(0x3e38aa3b);
  const minusInfinity = float32(0xff800000);

  const scaled = scores.map((score) => append(program, 'mul.f32', score, scale));
  const isVisible = append(program, 'setp.lt.s32', key, bound);
  const masked = scaled.map((score) =>
    append(program, 'selp.f32', score, minusInfinity, isVisible),
  );
  const maximum = masked.reduce<Slot>(
    (largest, score) => append(program, 'max.f32', largest, score),
    oldMaximum,
  );
  const weights = masked.map((score) =>
    append(program, 'ex2.approx.ftz.f32', append(program, 'sub.f32', score, maximum)),
  );
  const correction = append(
    program,
    'ex2.approx.ftz.f32',
    append(program, 'sub.f32', oldMaximum, maximum),
  );
  const sum = weights.reduce((total, weight) => append(program, 'add.f32', total, weight));
  append(program, 'fma.rn.f32', sum, correction, sum);
  for (let i = 0; i < count; i += 2)
    append(program, 'cvt.rn.bf16x2.f32', weights[i + 1], weights[i]);
  for (const accumulator of accumulators) append(program, 'mul.f32', accumulator, correction);
  return {
    operations: program.operations,
    inputs: [...scores, ...accumulators, oldMaximum],
    bytes: program.bytes(),
  };
}

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
