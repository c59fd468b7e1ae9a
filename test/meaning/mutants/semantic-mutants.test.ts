/**
 * Mutants of what kernels compute: a certificate refutes each that changes a real value of an output, and certifies each that does
 * not. `npx vitest run test/meaning/mutants` runs all and prints their table (docs/reference/certificates.md).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { semanticJudge } from './judge-semantic.js';
import { type MutantKernel, mutantKernels, writeKernel } from './mutant-kernels.js';
import { isOverlooked, isWronged, type JudgedRow, mutantTable } from './mutant-table.js';
import { type SemanticMutant, semanticMutants } from './semantic-mutants.js';

/** The mutants are the same in every run, so that the table is. */
const [problemSeed, mutantSeed, perKind] = [5, 1, 6];

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-mutants-'));
const all: JudgedRow[] = [];
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (all.length > 0) process.stdout.write(`${mutantTable(all)}\n`);
});

/** A mutant that was judged, with what a reader of a failure wants to see. */
type Judged = JudgedRow & Pick<SemanticMutant, 'line' | 'before' | 'after'>;

/** Judges mutants of a kernel, which itself is certified and passes its audit. */
async function judgeKernel(
  kernel: MutantKernel,
  choose: (mutants: readonly SemanticMutant[]) => readonly SemanticMutant[],
): Promise<readonly Judged[]> {
  const files = await writeKernel(scratch, kernel, problemSeed);
  const { base, certificate, passesAudit, judge } = await semanticJudge(
    files,
    join(scratch, 'mutant.ptx'),
  );
  expect(certificate).toMatchObject({ status: 'certified' });
  expect(passesAudit).toBe(true);
  const { byLine } = base.result.run.counts;
  const mutants = semanticMutants(
    { ptx: files.text, module: base.result.opened.module },
    (line) => (byLine.get(line)?.executions ?? 0) > 0,
    { seed: mutantSeed, perKind },
  );
  const judged: Judged[] = [];
  for (const { ptx, ...mutant } of choose(mutants)) {
    const verdict = await judge({ ptx, ...mutant });
    expect(verdict, `${mutant.after} is no instruction`).not.toBeNull();
    if (verdict === null) continue;
    const { changesBits, changesReal, isAudited, status, hasFindings } = verdict;
    const known = { changesBits, changesReal, isAudited, status, hasFindings };
    judged.push({ kernel: kernel.name, ...mutant, ...known });
  }
  return judged;
}

const quick = mutantKernels.find(({ name }) => name === 'triton-wgmma-d64-tails-causal')!;

it('refutes a dozen mutants that change a real value, and certifies those that do not', async () => {
  const judged = await judgeKernel(quick, (mutants) => sampled(mutants, 12));
  expect(judged.filter(isOverlooked)).toEqual([]);
  expect(judged.filter(isWronged)).toEqual([]);
});

const inTurn = turns(import.meta.url);

for (const kernel of mutantKernels)
  inTurn(`refutes mutants of ${kernel.name}`, { timeout: 1_200_000 }, async () => {
    const judged = await judgeKernel(kernel, (mutants) => mutants);
    all.push(...judged);
    expect(judged.filter(isOverlooked)).toEqual([]);
    expect(judged.filter(isWronged)).toEqual([]);
  });
