import type { ProblemShape } from '../../../../problem/index.js';
import { lazily } from '../../../../reuse.js';
import type { SampleRow } from '../../hypothesis.js';
import type { TileFault, TileRows } from './faulty-row.js';
import { GranuleSums, ownTile, type KeyTile, type TileSource } from './granule-sums.js';

/** Tiles of all kinds that are tried in full, after the first rows have ranked them. */
export const triedInFull = 24;
/** A row's largest share in a tile's rank: beyond that all misfits are equally bad. */
const largestMisfit = 200;
/** Damaged rows that rank the tiles. */
export const rankingRows = 6;

/** A tile under a fault, and how far the ranking rows are from it. */
export interface Candidate {
  readonly tile: KeyTile;
  readonly fault: TileFault;
  readonly misfit: number;
}

/** Sums of the ranking rows over stretches of keys, whatever the tiles are that consist of these. */
export class RankedRows {
  readonly rows: readonly SampleRow[];
  readonly #of: TileRows;
  readonly #granule: number;
  readonly #own: () => readonly GranuleSums[];
  readonly #ofZeroKeys: () => readonly GranuleSums[];

  constructor(of: TileRows, rows: readonly SampleRow[], granule: number) {
    this.rows = rows;
    this.#of = of;
    this.#granule = granule;
    this.#own = lazily(() => this.#sums(ownTile));
    this.#ofZeroKeys = lazily(() => this.#sums({ ...ownTile, zeroKeys: true }));
  }

  /** The sums of a row with K and V of its own. */
  own(row: number): GranuleSums {
    return this.#own()[row];
  }

  /** The sums of a row with K and V as tiles of one size with a fault have them. */
  faulty(row: number, size: number, { keysFrom, valuesFrom, zeroKeys }: TileFault): GranuleSums {
    if (zeroKeys && valuesFrom === 0) return this.#ofZeroKeys()[row];
    if (keysFrom === 0 && valuesFrom === 0) return this.own(row);
    const source = { keysFrom: keysFrom * size, valuesFrom: valuesFrom * size, zeroKeys };
    return this.#sumsOf(this.rows[row], source);
  }

  #sums(source: TileSource): readonly GranuleSums[] {
    return this.rows.map((row) => this.#sumsOf(row, source));
  }

  #sumsOf(row: SampleRow, source: TileSource): GranuleSums {
    const { reader, shares } = this.#of;
    return new GranuleSums(reader, row, shares(row), this.#granule, source);
  }
}

/** The tiles of one size that rows under one kind of fault are least far from, in order; of equally far ones the first. */
export function rankTiles(
  { keys, vDim }: ProblemShape,
  ranked: RankedRows,
  size: number,
  fault: TileFault,
): Candidate[] {
  const count = Math.ceil(keys / size);
  const tileAt = (t: number) => ({ begin: t * size, end: Math.min((t + 1) * size, keys) });
  const misfits = new Float64Array(count);
  for (const [index, row] of ranked.rows.entries()) {
    const sums = ranked.own(index);
    const faulty = ranked.faulty(index, size, fault);
    for (let t = 0; t < count; t++) {
      const tile = tileAt(t);
      const total = 1 - sums.weight(tile) + fault.inSum * faulty.weight(tile);
      let squares = 0;
      for (let c = 0; c < vDim; c++) {
        const product =
          row.correct.out[c] - sums.sum(tile, c) + fault.inOutput * faulty.sum(tile, c);
        squares += (row.observed[c] - product / total) ** 2;
      }
      const misfit = squares / row.correct.noise;
      misfits[t] += misfit < largestMisfit ? misfit : largestMisfit;
      const { observedLse } = row;
      if (observedLse === null || !Number.isFinite(observedLse)) continue;
      const lseError = observedLse - row.correct.lse - Math.log(total);
      const ofLse = (lseError / row.bound.lse) ** 2;
      misfits[t] += ofLse < largestMisfit ? ofLse : largestMisfit;
    }
  }
  const best: Candidate[] = [];
  misfits.forEach((misfit, t) => {
    if (best.length === triedInFull && !(misfit < best[triedInFull - 1].misfit)) return;
    const place = best.findLastIndex((one) => one.misfit <= misfit) + 1;
    best.splice(place, 0, { tile: tileAt(t), fault, misfit });
    if (best.length > triedInFull) best.pop();
  });
  return best;
}
