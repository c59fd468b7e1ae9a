import type { Premises } from '../premises/premises.js';
import { joinLseSums, type LseSums, SlopeDispersion, testMeanLse } from './head-tests.js';
import { pooledFactory, type HeadPart } from './measure-structure.js';
import { judgePooled, type StructureLimits } from './structure-entries.js';
import {
  inTestOrder,
  structureScopes,
  WorstResults,
  type StructureResult,
} from './structure-result.js';

/**
 * The structure tests of an audit: per row, per tile of 128 query rows and per head, projections of the
 * kernel's error against what rounding errors can cause. Parts of the problem are measured apart (`measureStructure`);
 * here they are put together, in the order of heads and rows. The premises and the proof of the thresholds are
 * in docs/bounds.md, "The structure". All tests together raise a false alarm with probability at most
 * `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose sums overflow fp64 are left out.
 * Returns, per test and scope, the result that is largest relative to its threshold.
 */
export class StructureJudge {
  readonly #limits: StructureLimits;
  readonly #premises: Premises;
  readonly #worst = new WorstResults();
  readonly #pooled;
  readonly #dispersion = new SlopeDispersion();
  #lse: LseSums[] = [];
  #rows = 0;
  #head = 0;

  constructor(limits: StructureLimits, premises: Premises) {
    this.#limits = limits;
    this.#premises = premises;
    this.#pooled = pooledFactory(premises)();
  }

  /** Takes results whose places are those of the whole problem. */
  addResults(results: readonly StructureResult[]): void {
    for (const result of results) this.#worst.add(result);
  }

  /** Takes what the next rows add to their head, which is judged with its last row. */
  addHeadPart({ pooled, dispersion, lse }: HeadPart, rows: number): void {
    this.#pooled.mergeState(pooled);
    this.#dispersion.mergeState(dispersion);
    if (lse !== null) this.#lse.push(lse);
    this.#rows += rows;
    if (this.#rows === this.#limits.extent.queries) this.#judgeHead();
  }

  #judgeHead(): void {
    const { extent, share, deviations } = this.#limits;
    const { isUsual, exponential } = this.#premises;
    const [worst, pooled] = [this.#worst, this.#pooled];
    const place = { scope: 'head', head: this.#head, firstRow: 0, rows: extent.queries } as const;
    judgePooled(worst, pooled, place, isUsual, deviations.head);
    const all = { ...place, firstKey: null, keys: null };
    const slopes = this.#dispersion.result(share / Math.max(extent.heads, 1));
    if (slopes.threshold !== 0 && isUsual) worst.add({ test: 'dispersion', ...all, ...slopes });
    const mean =
      this.#lse.length === 0
        ? null
        : testMeanLse(joinLseSums(this.#lse), pooled, deviations.head, exponential);
    if (mean !== null) worst.add({ test: 'lse-mean', ...all, ...mean });
    pooled.clear();
    this.#dispersion.clear();
    this.#lse = [];
    this.#rows = 0;
    this.#head++;
  }

  /** Per test and scope the result that is largest relative to its threshold. */
  results(): StructureResult[] {
    const found = this.#worst.list();
    return inTestOrder(
      structureScopes.flatMap((scope) => found.filter((result) => result.scope === scope)),
    );
  }
}
