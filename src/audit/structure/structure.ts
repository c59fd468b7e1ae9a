import type { Premises } from '../premises/premises.js';
import { joinLseSums, type LseSums, SlopeDispersion, testMeanLse } from './head-tests.js';
import {
  channels,
  joinScorePlaces,
  sharedRoundings,
  type ScorePlacesState,
} from './declared/score-places.js';
import {
  judgeSelfNormalised,
  selfInstruments,
  SelfNormalised,
} from './declared/self-normalised.js';
import { pooledFactory, type HeadPart } from './measure-structure.js';
import { judgePooled, type StructureLimits, type StructurePlace } from './structure-entries.js';
import { alarmDeviations } from './structure-statistic.js';
import {
  inTestOrder,
  structureScopes,
  WorstResults,
  type StructureResult,
} from './structure-result.js';

/**
 * The structure tests of an audit: per row, per tile of 128 query rows and per head, projections of the kernel's error
 * against thresholds that rounding errors explain. Parts of the problem are measured apart (`measureStructure`); here
 * they are put together, in the order of heads and rows. The premises and the proof of the thresholds are in
 * docs/theory/bounds.md, "The structure". All tests together raise a false alarm with probability at most `falseAlarmRate`.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose sums overflow fp64 are left out. Returns, per test
 * and scope, the result that is largest relative to its threshold.
 */
export class StructureJudge {
  readonly #limits: StructureLimits;
  readonly #premises: Premises;
  readonly #worst = new WorstResults();
  readonly #pooled;
  readonly #dispersion = new SlopeDispersion();
  #lse: LseSums[] = [];
  readonly #written = new SelfNormalised();
  #places: ScorePlacesState | null = null;
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

  /** Adds a part of the next rows to their head, which is judged with its last row. */
  addHeadPart({ pooled, dispersion, lse, written }: HeadPart, rows: number): void {
    this.#pooled.mergeState(pooled);
    this.#dispersion.mergeState(dispersion);
    if (lse !== null) this.#lse.push(lse);
    if (written !== null) {
      this.#written.mergeState(written.sums);
      this.#places = joinScorePlaces(this.#places, written.places);
    }
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
    this.#judgeWritten(place);
    pooled.clear();
    this.#dispersion.clear();
    this.#lse = [];
    this.#rows = 0;
    this.#head++;
  }

  /** Judges a head beside that by the spread of its own rows, where scores are written in a short format. */
  #judgeWritten(place: StructurePlace): void {
    const { extent, share } = this.#limits;
    const { scores } = this.#premises;
    const [places, pooled, written] = [this.#places, this.#pooled, this.#written];
    if (places === null || scores === null || pooled.rows === 0) return;
    // Three events for each: the usual errors, the others, and the squares of the usual ones.
    const deviations = alarmDeviations(3 * extent.heads, share);
    const shared = sharedRoundings(scores, places);
    const ofOutput = selfInstruments.map((d, channel) => ({
      test: channels[channel],
      norm: pooled.norm[d],
      usual: pooled.tolerance(d, deviations) - written.written(channel),
      shared: shared[channel],
    }));
    const lse = {
      test: channels[2],
      norm: written.lseRows,
      usual: written.usual(2, deviations),
      shared: shared[2],
    };
    judgeSelfNormalised(this.#worst, written, place, [...ofOutput, lse], deviations);
    written.clear();
    this.#places = null;
  }

  /** Per test and scope the result that is largest relative to its threshold. */
  results(): StructureResult[] {
    const found = this.#worst.list();
    return inTestOrder(
      structureScopes.flatMap((scope) => found.filter((result) => result.scope === scope)),
    );
  }
}
