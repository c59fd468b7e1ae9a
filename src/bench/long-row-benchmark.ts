import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeSafetensors } from '../io/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import { auditedAccuracy } from './audited-problem.js';
import type { Benchmark } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalValues } from './normal-problem.js';

/** Keys of one head, and their dimension. */
interface RowSize {
  readonly keys: number;
  readonly dim: number;
}

const size: RowSize = { keys: 2 ** 20, dim: 128 };
const quickSize: RowSize = { keys: 1024, dim: 16 };

const { bf16 } = formats;
/** Keys that are made at once: `normalValues` repeats, so that each stretch has a seed of its own. */
const stretch = 2048;

/** Normal numbers in bf16 times a factor. */
function normalTensor(rows: number, dim: number, firstSeed: number, factor = 1): Tensor {
  const data = new Uint16Array(rows * dim);
  for (let row = 0, seed = firstSeed; row < rows; row += stretch, seed++) {
    const values = normalValues(Math.min(stretch, rows - row) * dim, seed);
    data.set(
      encodeFromFloat64(
        bf16,
        values.map((x) => factor * x),
      ),
      row * dim,
    );
  }
  return { format: 'bf16', shape: [1, 1, rows, dim], data };
}

/**
 * Writes one query over many keys, with the exact output in bf16, and with one that errs by three tenths of its mean size, at random: no known
 * cause gives it.
 */
async function writeRow(
  folder: string,
  { keys, dim }: RowSize,
): Promise<Record<'right' | 'wrong', string>> {
  const tensors = {
    // Scores with a deviation of 2.
    q: normalTensor(1, dim, 1, 2),
    k: normalTensor(keys, dim, 1000),
    v: normalTensor(keys, dim, 2000),
  };
  const law = { scale: 1 / Math.sqrt(dim), causal: false, window: null, softcap: null };
  const problem: Problem = { ...law, ...tensors };
  const exact = attentionOracle(problem, auditedAccuracy).quantities.out.values;
  const mean = exact.reduce((sum, x) => sum + Math.abs(x), 0) / dim;
  const errors = normalValues(dim, 3);
  const outputs = { right: exact, wrong: exact.map((x, c) => x + 0.3 * mean * errors[c]) };
  const paths = {
    right: join(folder, 'right.safetensors'),
    wrong: join(folder, 'wrong.safetensors'),
  };
  for (const name of ['right', 'wrong'] as const) {
    const out = { ...tensors.q, data: encodeFromFloat64(bf16, outputs[name]) };
    await writeSafetensors(paths[name], { ...tensors, out });
  }
  return paths;
}

/** Audits of one query over 2^20 keys by the command line, one thread: of an output that passes, and of one that fails without a cause. */
export function longRowBenchmark(commandLine: string): Benchmark {
  const name = 'audit of one query over [1, 1048576, 128] bf16';
  const time = { unit: 's', better: 'lower' } as const;
  const memory = { unit: 'bytes', better: 'lower', target: 1e9 } as const;
  return {
    quantities: [
      { ...time, name: `${name}: time`, target: 8 },
      { ...memory, name: `${name}: peak memory` },
      { ...time, name: `${name}, failing: time`, target: 12 },
      { ...memory, name: `${name}, failing: peak memory` },
    ],
    runs: 1,
    isWarm: true,
    prepare: async (quick) => {
      const folder = await mkdtemp(join(tmpdir(), 'flashproof-bench-'));
      const dispose = () => rm(folder, { recursive: true, force: true });
      try {
        const { right, wrong } = await writeRow(folder, quick ? quickSize : size);
        const audit = (path: string) =>
          measureCommand(commandLine, ['audit', path, '--quiet', '--threads', '1']);
        const measure = async () => [...(await audit(right)), ...(await audit(wrong))];
        return { measure, dispose };
      } catch (error) {
        await dispose();
        throw error;
      }
    },
  };
}
