import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { formatNumber } from '../../../src/words/index.js';
import { alignedUp } from '../../problems/index.js';
import { factors, withColumns } from '../lse-laws.js';
import { NotApplicable } from '../law.js';
import { keyOrders } from '../order-laws.js';
import { requirePromised } from '../promised-problem.js';
import { loneSequence, sequencesOf } from '../served/sequence-problems.js';
import { arrangeProblem, indices, permutation, spreadChoice } from '../transform-problem.js';
import { arrangeDout, mapGradients } from './arrange-gradients.js';
import {
  arrangedDifference,
  arrangeErring,
  erring,
  gradientDifference,
} from './compare-gradients.js';
import { gradientLaw } from './gradient-law.js';

/** Approximate shifts of the scores, in nats. */
const shifts: readonly number[] = [1, -1, 8, -8, 64, -64];

/**
 * The last column of K is c, a power of two, or 0, for all keys; that of Q one number for all queries: one vector added to
 * all keys. dQ is Σ dS·k, and Σ dS is 0.
 */
export const gradientsKeyShift = gradientLaw({
  statement: 'One vector added to all keys changes no gradient beyond rounding',
  reason:
    'A softmax sees differences of scores only, and Σ dS of a row is 0. A D that is not that of the row adds the vector to dQ.',
  strengths: ['bound'],
  usual: 'bound',
  choices: shifts.length,
  without: ['sink', 'descale'],
  constraints: { softcap: false },
  violation: async ({ problem, dout, choice }, tools) => {
    if (problem.softcap !== null) throw new NotApplicable('the problem has a softcap');
    const [a, c] = factors(problem, shifts[choice]);
    const [before, shifted] = [withColumns(problem, a, 0), withColumns(problem, a, c)];
    requirePromised(shifted, tools.promises);
    const usual = await tools.runGradients(before, dout);
    const changed = await tools.runGradients(shifted, dout);
    const words = `with ${formatNumber(c)} added to the last column of all keys`;
    return gradientDifference(erring(usual, tools), erring(changed, tools), {
      shape: usual.shape,
      usual: 'at first',
      changed: words,
    });
  },
});

/** Batches, kv heads and the query heads of a group permuted; choice 0: all backwards. */
export const gradientsHeads = gradientLaw({
  statement: 'Batches and heads in another order give the same gradients in that order',
  reason:
    'No head takes part in another, but that a group adds up its dK and dV. Heads of another group, strides of another tensor and statistics of another head show.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: 16,
  violation: async ({ problem, dout, choice }, tools) => {
    const shape = problemShape(problem);
    if (shape.batch * shape.heads === 1) throw new NotApplicable('the problem has one head');
    const kvHeads = permutation(shape.kvHeads, choice);
    const arrangement = {
      batches: permutation(shape.batch, choice),
      kvHeads,
      // The heads of a group add up in an order, which they keep.
      heads: kvHeads.flatMap((kvHead) => indices(shape.groupSize, kvHead * shape.groupSize)),
    };
    const usual = await tools.runGradients(problem, dout);
    const changed = await tools.runGradients(
      arrangeProblem(problem, arrangement),
      arrangeDout(dout, shape, arrangement),
    );
    const words = 'with batches and heads in another order';
    return arrangedDifference({ usual, changed, arrangement, words }, tools);
  },
});

/** Heads that share K and V, and the same with K and V of their own: dK and dV of a group are the sums. */
export const gradientsGrouped = gradientLaw({
  statement:
    'The dK and dV of a kv head are the sums of those of its query heads with keys of their own',
  reason:
    'A group shares its keys: their gradients add up. One head of the group alone, heads of another group and shares that are rounded too early show.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  notFor: ({ groupedHeads, groupSizes }) =>
    !groupedHeads || (groupSizes?.includes(1) ?? true) === false
      ? 'grouped heads, or ungrouped ones, are not promised'
      : null,
  violation: async ({ problem, dout }, tools) => {
    const shape = problemShape(problem);
    const { batch, heads, kvHeads, groupSize } = shape;
    if (groupSize === 1) throw new NotApplicable('the problem has no grouped heads');
    const ofHeads = indices(heads).map((head) => Math.floor(head / groupSize));
    const apart = arrangeProblem(problem, { kvHeads: ofHeads });
    requirePromised(apart, tools.promises);
    const grouped = erring(await tools.runGradients(problem, dout), tools);
    const single = erring(await tools.runGradients(apart, dout), tools);
    const summed = (of: Float64Array): Float64Array => {
      const ofHead = of.length / (batch * heads);
      return Float64Array.from({ length: batch * kvHeads * ofHead }, (_, i) => {
        const first = Math.floor(i / ofHead) * groupSize;
        return indices(groupSize, first).reduce(
          (sum, head) => sum + of[head * ofHead + (i % ofHead)],
          0,
        );
      });
    };
    const added = (values: typeof single.values) =>
      mapGradients((name) => (name === 'dq' ? values.dq : summed(values[name])));
    return gradientDifference(
      { values: added(single.values), errors: added(single.errors) },
      grouped,
      {
        shape,
        usual: 'of the query heads together, each with keys of its own,',
        changed: `with keys shared by ${groupSize}`,
      },
    );
  },
});

/** Orders of each form: the reverse, and random ones. */
const ordersOfEach = 16;

/** Keys with their values in another order, in which dK and dV are as well. */
export const gradientsKeyPermutation = gradientLaw({
  statement: 'Keys in another order give the same dQ, and dK and dV in that order, beyond rounding',
  reason:
    'Sums over keys have no order. Tiles that are lost, stale or transposed lie elsewhere then.',
  strengths: ['bound'],
  usual: 'bound',
  choices: keyOrders.length * ordersOfEach,
  without: ['alibi', 'block-mask', 'packed', 'prefix'],
  constraints: { causal: false, window: false },
  violation: async ({ problem, dout, choice }, tools) => {
    if (problem.causal || problem.window !== null)
      throw new NotApplicable('the problem has a mask');
    const { keys } = problemShape(problem);
    const { description, order } = keyOrders[choice % keyOrders.length];
    const which = Math.floor(choice / keyOrders.length);
    const arrangement = { keys: order(keys, tools.promises.blockKeys, which) };
    const usual = await tools.runGradients(problem, dout);
    const changed = await tools.runGradients(arrangeProblem(problem, arrangement), dout);
    return arrangedDifference(
      { usual, changed, arrangement, words: `with ${description}` },
      { ...tools, strength: 'bound' },
    );
  },
});

/** Sequences that are tried. */
const sequenceChoices = 8;

/** A batch, or a packed sequence, by itself and among the others. */
export const gradientsAlone = gradientLaw({
  statement: 'A sequence or a batch alone has the gradients that it has among others',
  reason:
    'Each is a problem of its own. Packed statistics that are read where padded ones would lie, boundaries that are off by a row and orders of adds that depend on the batch show.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: sequenceChoices,
  violation: async ({ problem, dout, choice }, tools) => {
    const sequences = sequencesOf(problem);
    const fitting = indices(sequences.length).filter((index) => sequences[index].queries > 0);
    if (fitting.length === 0 || (sequences.length === 1 && problem.sequences === undefined))
      throw new NotApplicable('the problem has one sequence alone');
    const index = fitting[spreadChoice(choice, sequenceChoices, fitting.length)];
    const { alone, rows } = loneSequence(problem, index);
    requirePromised(alone, tools.promises);
    const shape = problemShape(problem);
    const packed = problem.sequences?.[index];
    const arrangement =
      packed === undefined ? rows : { ...rows, keys: indices(packed.keys, packed.firstKey) };
    const usual = await tools.runGradients(problem, dout);
    const changed = await tools.runGradients(alone, arrangeDout(dout, shape, rows));
    return arrangedDifference(
      { usual, changed, arrangement, words: `with sequence ${index} alone` },
      tools,
    );
  },
});

/** Number of counts of rows that are tried. */
const rowChoices = 16;

/** The last rows alone, as in decoding, and all rows with a dO of zeros for the others. */
export const gradientsDecode = gradientLaw({
  statement:
    'The last rows alone have the dQ that they have among all, and the dK and dV that their dO makes',
  reason:
    'A row of dQ depends on its own dO; rows without one add nothing to dK and dV. Masks that are aligned otherwise for few rows, and rows of a tile that are taken for one another, show.',
  strengths: ['bound'],
  usual: 'bound',
  choices: rowChoices,
  without: ['packed'],
  violation: async ({ problem, dout, choice }, tools) => {
    const shape = problemShape(problem);
    const { queries } = shape;
    const multiple = tools.promises.multiples.queries ?? 1;
    if (queries <= multiple) throw new NotApplicable('the problem has no row to compute alone');
    const count = alignedUp(1 + spreadChoice(choice, rowChoices, queries - multiple), multiple);
    const rows = { queries: indices(count, queries - count) };
    const alone = arrangeProblem(problem, rows);
    requirePromised(alone, tools.promises);
    const { vDim } = shape;
    const lastOnly = decodeTensor(dout).map((x, i) =>
      Math.floor(i / vDim) % queries < queries - count ? 0 : x,
    );
    const zeroed = { ...dout, data: encodeFromFloat64(formats[dout.format], lastOnly) };
    const usual = erring(await tools.runGradients(problem, zeroed), tools);
    const changed = await tools.runGradients(alone, arrangeDout(dout, shape, rows));
    return gradientDifference(arrangeErring(usual, shape, rows), erring(changed, tools), {
      shape: changed.shape,
      usual: 'among all',
      changed: count === 1 ? 'with the last row alone' : `with the last ${count} rows alone`,
    });
  },
});
