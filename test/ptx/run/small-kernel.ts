import {
  createByteStore,
  createConstantMemory,
  createGlobalMemory,
  type Instruction,
} from '../../../src/machine/index.js';
import {
  findLaneInstruction,
  hasLane,
  laneAddresses,
  type IssuingWarp,
  type VisibleInstruction,
} from '../../../src/ptx/instructions/index.js';
import { createProgram } from '../../../src/ptx/program/index.js';
import { runKernel, type KernelRun } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { createTensorMaps } from '../../../src/ptx/run/tensor-maps.js';

/** What a lane does to a word of memory: what is to be stored, or null, and what the lane gets. */
type Access = (old: number, operands: readonly number[]) => number | null;

/** A row for accesses to words that nobody follows: these tests are of control flow alone. */
function row(
  name: string,
  memory: Uint32Array,
  access: Access,
  hasResult: boolean,
): VisibleInstruction {
  return {
    name,
    meaning: 'moves',
    evidence: 'isa',
    source: 'a row of this test',
    lower: ({ operands, site }) => {
      const address = operands[hasResult ? 1 : 0];
      const values = operands.slice(hasResult ? 2 : 1);
      if (address.kind !== 'address') return { unsupported: 'an address' };
      const slots = [...operands].flatMap((one) => (one.kind === 'register' ? [one.slot] : []));
      return {
        isAligned: false,
        reads: address.base === null ? slots : [...slots, address.base],
        writes: slots,
        lends: [],
        issue: function* ({ registers, lanes }: IssuingWarp): Generator<Instruction, void, void> {
          const addresses = laneAddresses(registers, address, lanes);
          const execute = () => {
            for (let lane = 0; lane < 32; lane++) {
              if (!hasLane(lanes, lane)) continue;
              const word = addresses[lane] / 4;
              const old = memory[word];
              const read = values.map((one) =>
                one.kind === 'register'
                  ? registers.words(one.slot)[lane]
                  : one.kind === 'constant'
                    ? Number(one.bits)
                    : 0,
              );
              const stored = access(old, read);
              if (stored !== null) memory[word] = stored;
              if (hasResult && operands[0].kind === 'register')
                registers.words(operands[0].slot)[lane] = old;
            }
            return {};
          };
          yield { op: 'registers', reads: [], execute, site };
        },
      };
    },
  };
}

/** Runs the text of a kernel `k(.param .u64 out)` on so many threads and CTAs: its first parameter is address 0 of `memory`. */
export function runSmallKernel(
  text: string,
  memory: Uint32Array,
  { threads = 32, ctas = 1, outside = '', mostSteps = 1e6 } = {},
): KernelRun {
  const module = parsePtx(
    `.version 8.0\n.target sm_90\n.address_size 64\n${outside}\n.visible .entry k(.param .u64 out)\n{\n${text}\n}\n`,
  );
  const program = createProgram(module, 'k', {
    file: 'k.ptx',
    place: () => 4096,
    tables: {
      lane: findLaneInstruction,
      warp: [
        {
          name: 'bar.warp.sync',
          meaning: 'none',
          evidence: 'isa',
          source: 'a row of this test',
          lower: () => ({
            converged: { maskOperand: 0 },
            meaning: 'none',
            reads: [],
            writes: [],
            execute: () => null,
          }),
        },
      ],
      visible: [
        row('ld', memory, () => null, true),
        row('st', memory, (_, [value]) => value, false),
        row(
          'atom.global.cas',
          memory,
          (old, [compared, value]) => (old === compared ? value : null),
          true,
        ),
        row('atom.global.exch', memory, (_, [value]) => value, true),
        row('atom.global.add', memory, (old, [value]) => old + value, true),
        {
          name: 'bar.sync',
          meaning: 'none',
          evidence: 'isa',
          source: 'a row of this test',
          lower: ({ site }) => ({
            isAligned: true,
            reads: [],
            writes: [],
            lends: [],
            issue: function* (warp: IssuingWarp): Generator<Instruction, void, void> {
              yield { op: 'bar.sync', barrier: 0, threads: 32 * warp.warps, site };
            },
          }),
        },
      ],
    },
  });
  return runKernel(
    {
      program,
      grid: [ctas, 1, 1],
      block: [threads, 1, 1],
      cluster: [1, 1, 1],
      dynamicSharedBytes: 0,
      memory: {
        global: createGlobalMemory(),
        constant: createConstantMemory(),
        parameters: createByteStore(8),
        localBytes: 0,
      },
      tensorMaps: createTensorMaps({
        parameters: new Map(),
        find: () => undefined,
        before: () => null,
      }),
    },
    { mostSteps },
  );
}
