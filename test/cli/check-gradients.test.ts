import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import type { CheckReport } from '../../src/report/json/check/index.js';
import { RequestError } from '../../src/request-error.js';
import { testSeed } from '../setup/effort.js';
import { runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-check-gradients-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const script = fileURLToPath(new URL('check-protocol-kernel.mjs', import.meta.url));

const promises = join(scratch, 'promises.json');
const sizes = { batch: { max: 1 }, groupSize: { max: 2 }, queries: { max: 4 }, keys: { max: 4 } };
writeFileSync(
  promises,
  JSON.stringify({ formats: ['bf16'], dims: [4], sizes, gradients: true, softcap: true }),
);

/** The options of a check of the script with one fault. */
function live(fault: string, properties: string, ...more: string[]): string[] {
  return [
    ...['check', '--exec', `"${process.execPath}" "${script}" ${fault}`, '--promises', promises],
    ...['--property', properties, '--seed', String(testSeed), '--timeout', '60'],
    ...['--regime', 'normal', '--runs', '2'],
    ...['--save-dir', join(scratch, fault), ...more],
  ];
}

async function checked(fault: string, properties: string, ...more: string[]) {
  const asked = live(fault, properties, ...more);
  const { status, stdout } = await runInProcess(...asked, '--json', '-');
  const report = JSON.parse(stdout) as CheckReport;
  await validateCheckReport(report);
  return { status, report };
}

describe('flashproof check --gradients', { timeout: 300_000 }, () => {
  it('passes a live kernel that gives the gradients which are wanted', async () => {
    const laws = 'gradients-within-bound,gradients-conserved,gradients-determinism';
    const { status, report } = await checked('none', laws, '--deterministic');
    expect(report.verdict.sentence).toMatch(/^PASS: 3 properties hold /);
    expect(report.promises).toMatchObject({ gradients: true, deterministic: true });
    expect(report.properties.map(({ promise }) => promise)).toEqual(['bound', 'bound', 'bits']);
    expect(status).toBe(0);
  });

  it('names the gradient and the cause, saves dO beside the problem, and tries it again', async () => {
    const junit = join(scratch, 'junit.xml');
    const { status, report } = await checked(
      'always-delta',
      'gradients-within-bound',
      ...['--junit', junit, '--runs', '20'],
    );
    expect(status).toBe(1);
    const [{ violation }] = report.properties;
    expect(violation!.statement).toMatch(/d[QK]/);
    expect(violation!.values?.some((line) => line.startsWith('dout: bf16 ['))).toBe(true);
    expect(readFileSync(junit, 'utf8')).toMatch(/gradients-within-bound[^]*d[QK]/);
    const file = await openTensorFile(violation!.saved!);
    try {
      expect([...file.entries.keys()].sort()).toEqual(
        ['dk', 'dout', 'dq', 'dv', 'k', 'lse', 'out', 'q', 'v'].sort(),
      );
    } finally {
      await file.close();
    }
    expect(violation!.replay).toContain('--promises');
    const again = await runInProcess(...violation!.replay!.slice(1), '--quiet');
    expect(again.status).toBe(1);
    expect(again.stdout).toContain(violation!.statement);
    const mended = live('none', 'gradients-within-bound', '--replay', violation!.saved!);
    expect((await runInProcess(...mended)).stdout).toMatch(
      /^PASS: gradients-within-bound holds[^]*\ndout: bf16 \[/,
    );
    const audited = await runInProcess('audit', violation!.saved!);
    expect(audited).toMatchObject({ status: 1 });
    expect(audited.stdout).toMatch(/d[QK]/);
  });

  it('a server that knows no wants keeps its forward laws, and is at fault for gradients alone', async () => {
    const { report } = await checked('always-forward', 'within-bound,gradients-of-zero');
    expect(report.properties).toMatchObject([
      { result: 'holds' },
      {
        result: 'violated',
        violation: {
          statement: 'the kernel gave no dQ (dq), though it promises gradients',
        },
      },
    ]);
  });

  it('tries a model that has a backward pass, with the same bits again, and refuses one that has none', async () => {
    const asked = ['check', '--gradients', '--runs', '1', '--seed', String(testSeed)];
    const laws = ['--property', 'gradients-determinism,gradients-of-zero'];
    const { status, stdout } = await runInProcess(
      ...[...asked, ...laws, '--kernel', 'naive-fp32', '--json', '-'],
    );
    expect(status).toBe(0);
    const { properties } = JSON.parse(stdout) as CheckReport;
    expect(properties).toMatchObject([
      { promise: 'bits', result: 'holds' },
      { promise: 'bits', result: 'holds' },
    ]);
    const refused = runInProcess(...asked, '--kernel', 'fa1');
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toThrow(/fa1 has no backward pass/);
  });

  it('refuses laws of gradients that are not promised, and a replay of a file without dO', async () => {
    const refused = runInProcess(...live('none', 'gradients-linear', '--no-gradients'));
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toThrow(/gradients are not promised/);
  });
});
