import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import { type AuditReport } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { encode } from '../audit/damage.js';
import { filledProblem, pseudorandom } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const audit = (...args: string[]) => runInProcess('audit', ...args);

describe('an audit of partial results', () => {
  inTurn('judges the captured parts of a split problem, and their merge', async () => {
    const dump = 'fixtures/features/triton-splits.safetensors';
    const named = ['out', 'lse', 'out_partial', 'lse_partial'].map(
      (name) => `:triton_paged.${name}`,
    );
    const flags = ['--output', '--lse', '--out-partial', '--lse-partial'];
    const args = [dump, ...flags.flatMap((flag, i) => [flag, named[i]!])];
    const { status, stdout } = await audit(...args, '--no-techniques', '--json', '-');
    expect(status).toBe(0);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    const { parts, merge, instead } = report.splits!;
    expect(parts.map(({ pass }) => pass)).toEqual(new Array(5).fill(true));
    // 900, 40 and 130 keys in blocks of 64.
    const counts = parts.map(({ keys }) => keys.map(({ begin, end }) => end - begin));
    expect(counts).toEqual([
      [192, 40, 64],
      [192, 0, 64],
      [192, 0, 2],
      [192, 0, 0],
      [132, 0, 0],
    ]);
    expect(merge).toMatchObject({ pass: true, causes: [] });
    expect(instead).toBeNull();
    for (const [flag, value, message] of [
      ['--split-boundaries', '0,5', /5 parts; give 6 ascending/],
      ['--split-boundaries', 'x', /give positions of keys/],
      ['--split-block', '0', /give a whole number from 1/],
      ['--lse-base', '10', /^--lse-base is "10"; give e or 2/],
    ] as const)
      expect(await refusal('audit', ...args, '--no-techniques', flag, value)).toMatch(message);
  });

  inTurn('takes LSEs in base 2 where that is said, and names the base where not', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'flashproof-base-'));
    const path = join(folder, 'base2.safetensors');
    const frame = {
      format: 'bf16',
      batch: 1,
      heads: 2,
      kvHeads: 2,
      queries: 24,
      keys: 24,
      dim: 16,
    } as const;
    const { q, k, v, ...rest } = filledProblem(frame, pseudorandom(3));
    const { out, lse } = attentionOracle({ q, k, v, ...rest }).quantities;
    await writeSafetensors(
      path,
      {
        q,
        k,
        v,
        out: encode(out.values, 'bf16', [1, 2, 24, 16]),
        lse: encode(
          lse.values.map((x) => x / Math.LN2),
          'fp32',
          [1, 2, 24],
        ),
      },
      { scale: String(rest.scale) },
    );
    const wrong = await audit(path, '--quiet');
    expect(wrong.status).toBe(1);
    expect(wrong.stdout).toContain('the LSE is in base 2');
    expect((await audit(path, '--lse-base', '2', '--quiet')).status).toBe(0);
    await rm(folder, { recursive: true });
  });
});
