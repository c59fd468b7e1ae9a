import { beforeAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { decodeTensor } from '../../src/formats/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { encode } from '../audit/damage.js';
import { temporaryFolder } from '../io/temporary-folder.js';
import { normalProblem, seededRandom } from '../kernels/features/index.js';
import { testSeed } from '../setup/effort.js';
import { runInProcess } from './run-in-process.js';

const folder = temporaryFolder();
const [problemFile, outputs] = ['problem.safetensors', 'outputs.safetensors'].map((name) =>
  folder.at(name),
);
const argument = `${outputs}:mine`;

/** An output of bf16 numbers that was dumped in fp32, in a file of its own. */
beforeAll(async () => {
  const problem = normalProblem(seededRandom(testSeed), {
    batch: 1,
    heads: 2,
    kvHeads: 2,
    queries: 9,
    keys: 20,
  });
  const { out } = attentionOracle(problem).quantities;
  const { q, k, v } = problem;
  const shape = [...q.shape.slice(0, 3), v.shape[3]];
  const narrow = encode(out.values, 'bf16', shape);
  const mine = encode(decodeTensor(narrow), 'fp32', shape);
  await writeSafetensors(problemFile, { q, k, v }, { scale: String(problem.scale) });
  await writeSafetensors(outputs, { mine });
});

const audit = (...formats: string[]) =>
  runInProcess(
    ...['audit', problemFile, '--output', argument, '--threads', '1', '--json', '-'],
    ...formats.flatMap((format) => ['--format', format]),
  );

describe('--format', () => {
  it('is of a tensor of another file than that of the problem, too', async () => {
    const { stdout } = await audit('mine=bf16');
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: { pass: true, judged: true },
      inputs: { outputs: [{ name: 'out', tensor: 'mine', format: 'bf16' }] },
    });
  });

  it('names the tensors of all files that are read where it is of none of them', async () => {
    await expect(audit('mine=bf16', 'min=bf16')).rejects.toThrow(
      /tensor "min": a format is declared for it, but there is no such tensor here or in another file that is read; there are ("[qkv]", ){3}"mine"$/,
    );
  });

  it('is refused where a file is read alone', async () => {
    await expect(
      runInProcess('bound', problemFile, '--format', 'mine=bf16', '--threads', '1', '-q'),
    ).rejects.toThrow(
      /tensor "mine": a format is declared for it, .* there are ("[qkv]"(, )?){3}$/,
    );
  });
});
