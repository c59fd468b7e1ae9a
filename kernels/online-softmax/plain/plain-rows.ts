import { addFloat32 } from '../../../src/arith/index.js';
import type { Recipe } from '../recipe.js';
import { rowSumLaws } from '../row-sums.js';
import type { ForwardSteps, StepBlock } from '../steps.js';

/** The weights of one row in a block, in the formats of P, and the factor α of the earlier sums. */
interface RowWeights {
  readonly weights: readonly number[];
  readonly alpha: number;
}

/** The statistics of a tile's rows on their way through the blocks of keys, step by step. */
export class PlainRows {
  /** The kept value of each row: its maximum, or the LSE where every block is normalised. */
  maxima: number[] = [];
  rescales = new Int32Array();
  rowRescales = 0;
  rowRescalesSkipped = 0;
  readonly #steps: ForwardSteps;
  readonly #law: (typeof rowSumLaws)[keyof typeof rowSumLaws];
  readonly #normalisesBlocks: boolean;
  /** The columns of each thread of a row. */
  readonly #threads: readonly (readonly number[])[];
  /** Sums of each row's threads, and the values that the last block began them with. */
  #sums: number[][] = [];
  #starts: number[][] = [];
  #alphas: readonly number[] = [];
  /** Whether no block came before the last one. */
  #isFirst = true;

  constructor({ rowSum, finish, tiling }: Recipe, steps: ForwardSteps) {
    this.#steps = steps;
    this.#law = rowSumLaws[rowSum];
    this.#normalisesBlocks = finish.normalise === 'after-every-block';
    this.#threads = this.#law.columnsOfThreads(tiling.keys);
  }

  begin(rows: number): void {
    this.maxima = Array.from({ length: rows }, () => -Infinity);
    this.rescales = new Int32Array(rows);
    this.rowRescales = 0;
    this.rowRescalesSkipped = 0;
    this.#sums = Array.from({ length: rows }, () => this.#threads.map(() => 0));
    this.#starts = this.#sums.slice();
  }

  /**
   * The α of every row of a block. Calls back with the weights of each.
   *
   * @param scoresOf the scores of a row
   * @param hasSeenKeys whether the tile has seen a key before
   */
  addBlock(
    block: StepBlock,
    scoresOf: (row: number) => readonly number[],
    hasSeenKeys: boolean,
    onWeights: (row: number, weights: readonly number[]) => void,
  ): readonly number[] {
    const steps = this.#steps;
    this.#isFirst = block.index === 0;
    this.#alphas = this.maxima.map((_, row) => {
      const { weights, alpha } = this.#softmax(row, scoresOf(row), block, hasSeenKeys);
      onWeights(row, weights);
      this.#starts[row] = this.#threads.map(([first], t) =>
        steps.startingSum(this.#sums[row][t], alpha, weights[first]),
      );
      this.#sums[row] = this.#threads.map((columns, t) =>
        steps.rowSum(
          this.#starts[row][t],
          columns.map((j) => weights[j]),
          block,
        ),
      );
      return alpha;
    });
    return this.#alphas;
  }

  /** Factors of the rows' outputs. */
  normalisers(): readonly number[] {
    return this.#sums.map((_, row) =>
      this.#steps.normaliser(this.#total(row), this.#law.total(this.#starts[row])),
    );
  }

  /** The LSE of every row. */
  logSumExps(): number[] {
    const { logSumExp, logSumExp2 } = this.#steps;
    return this.maxima.map((maximum, row) => logSumExp(logSumExp2(maximum, this.#total(row))));
  }

  /** Adds a sink of this logit to every row; none at −∞. Kernels with one have one thread a row. */
  addSink(logit: number): void {
    if (logit === -Infinity) return;
    for (let row = 0; row < this.maxima.length; row++) {
      const { maximum, sum } = this.#steps.withSink(this.maxima[row], this.#sums[row][0], logit);
      this.maxima[row] = maximum;
      this.#sums[row] = [sum];
    }
  }

  #softmax(
    row: number,
    scores: readonly number[],
    block: StepBlock,
    hasSeenKeys: boolean,
  ): RowWeights {
    const steps = this.#steps;
    const isFirst = block.index === 0;
    const kept = this.maxima[row];
    const now = scores.reduce(steps.larger, isFirst ? -Infinity : steps.keptMaximum(kept));
    const { stored, subtracted, alpha, isSkipped } = steps.rowMaximum(kept, now, isFirst);
    if (!isFirst && hasSeenKeys) {
      if (isSkipped) this.rowRescalesSkipped++;
      else if (alpha < 1) {
        this.rowRescales++;
        this.rescales[row]++;
      }
    }
    this.maxima[row] = stored;
    const weights = scores.map((s, j) =>
      steps.exponential(steps.exponent(s, subtracted), j, block),
    );
    return { weights, alpha };
  }

  /** A row's sum; where O is normalised after every block, α is the weight of all blocks before. */
  #total(row: number): number {
    const total = this.#law.total(this.#sums[row]);
    return this.#normalisesBlocks && !this.#isFirst ? addFloat32(total, this.#alphas[row]) : total;
  }
}
