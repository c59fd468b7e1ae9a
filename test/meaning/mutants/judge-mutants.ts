import { expect } from 'vitest';
import type { SemanticJudge } from './judge-semantic.js';
import type { JudgedRow } from './mutant-table.js';
import { type SemanticMutant, semanticMutants } from './semantic-mutants.js';

/** The mutants are the same in every run, so that the table is. */
const [mutantSeed, perKind] = [1, 6];

/** A mutant that was judged, with what a reader of a failure wants to see. */
export type Judged = JudgedRow & Pick<SemanticMutant, 'line' | 'before' | 'after'>;

/** Judges mutants of a kernel, which itself is certified and passes its audit. */
export async function judgeMutants(
  kernel: string,
  { base, certificate, passesAudit, judge }: SemanticJudge,
  choose: (mutants: readonly SemanticMutant[]) => readonly SemanticMutant[],
): Promise<readonly Judged[]> {
  expect(certificate).toMatchObject({ status: 'certified' });
  expect(passesAudit).toBe(true);
  const { byLine } = base.result.run.counts;
  const { module, ptx: text } = base.result.opened;
  const mutants = semanticMutants(
    { ptx: text, module },
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
    judged.push({ kernel, ...mutant, ...known });
  }
  return judged;
}
