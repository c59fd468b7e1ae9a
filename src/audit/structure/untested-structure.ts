import type { ProblemShape } from '../../problem/index.js';
import { keyTileKeys } from './key-tile-test.js';
import type { Premises } from '../premises/premises.js';
import { structureTests, type StructureResult, type StructureTest } from './structure-result.js';

/** A structure test that nothing was held against, and why: a clause that follows "since". */
export interface UntestedStructure {
  readonly test: StructureTest;
  readonly reason: string;
}

/** Tests of what a declaration may itself bring about. */
const needsUsualPremises: ReadonlySet<StructureTest> = new Set([
  'truncation',
  'dispersion',
  'lse-mean',
]);

function reasonOf(
  test: StructureTest,
  { keys }: ProblemShape,
  { isUsual }: Premises,
  hasLse: boolean,
): string {
  if (test === 'key-tile' && keys <= keyTileKeys) return 'there is one tile of keys only';
  if (test === 'lse-mean' && !hasLse) return 'no LSE was given';
  if (needsUsualPremises.has(test) && !isUsual) return 'the kernel declares how it computes';
  return 'no row is finite, not zero, and errs by little enough for statistics';
}

/** The structure tests without a result. */
export function untestedStructure(
  results: readonly StructureResult[],
  shape: ProblemShape,
  premises: Premises,
  hasLse: boolean,
): UntestedStructure[] {
  return structureTests
    .filter((test) => !results.some((result) => result.test === test))
    .map((test) => ({ test, reason: reasonOf(test, shape, premises, hasLse) }));
}
