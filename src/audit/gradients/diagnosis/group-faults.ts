import { rowElements } from '../../../problem/index.js';
import type { GradientQuantityName } from '../gradient-quantities.js';
import { listed } from '../gradient-verdict.js';
import { gradientsOf, withRowFactors } from './changed-gradients.js';
import type { FailedGradients } from './failed-gradients.js';
import { fails, type PredictedGradients, type Prediction } from './prediction.js';

const ofKeys = ['dk', 'dv'] as const;

/** Heads of a gradient in another order: head h of each batch gets that of h + shift. */
function movedHeads(
  values: Float64Array,
  heads: number,
  sizeOfHead: number,
  shift: number,
): Float64Array {
  const moved = new Float64Array(values.length);
  for (let at = 0; at * sizeOfHead < values.length; at++) {
    const batch = Math.floor(at / heads);
    const from = batch * heads + (((at % heads) + shift) % heads);
    moved.set(values.subarray(from * sizeOfHead, (from + 1) * sizeOfHead), at * sizeOfHead);
  }
  return moved;
}

/** Gradients of another head, the same number of heads on for all. */
export function* movedHeadFaults(failed: FailedGradients): Generator<Prediction> {
  const { measured, given } = failed;
  const { shape, gradients } = measured;
  const failing = given.filter((one) => fails(failed, one));
  const most = Math.min(...failing.map(({ quantity }) => shape[quantity.axes[1]]));
  for (let shift = 1; shift < most; shift++) {
    const moved = failing.map(({ quantity }) => {
      const [, heads, rows] = quantity.axes;
      const size = shape[rows] * rowElements(quantity, shape);
      const { values } = gradients[quantity.name].exact;
      return [quantity.name, movedHeads(values, shape[heads], size, shift)] as const;
    });
    const words = listed(failing.map(({ quantity }) => quantity.prose));
    yield {
      id: 'heads-moved',
      sentence: `every head of ${words} is that of the head ${shift} further on`,
      predicted: Object.fromEntries(moved),
    };
  }
}

/** Groups of query heads of which dK and dV have one head only, or all but one. */
export function* groupFaults(failed: FailedGradients): Generator<Prediction> {
  const { problem, dout, measured, given } = failed;
  const { shape, gradients } = measured;
  const { groupSize, batch, heads, queries } = shape;
  const wanted = ofKeys.filter((name) =>
    given.some((one) => one.quantity.name === name && fails(failed, one)),
  );
  if (groupSize === 1 || wanted.length === 0) return;
  const words = listed(wanted.map((name) => ({ dk: 'dK', dv: 'dV' })[name]));
  const { kvHeads } = shape;
  // What head h of each batch entry and group adds is known once heads of one number in their groups are left alone.
  const regrouped = wanted.map((name) => new Float64Array(gradients[name].exact.values.length));
  for (let member = 0; member < groupSize; member++) {
    const factors = Float64Array.from({ length: batch * heads * queries }, (_, row) =>
      (Math.floor(row / queries) % heads) % groupSize === member ? 1 : 0,
    );
    const ofMember = gradientsOf(problem, withRowFactors(dout, factors), wanted);
    const only = Object.fromEntries(
      wanted.map((name) => [name, ofMember[name]] as const),
    ) as PredictedGradients;
    const without = Object.fromEntries(
      wanted.map((name: GradientQuantityName) => [
        name,
        gradients[name].exact.values.map((x, i) => x - ofMember[name][i]),
      ]),
    );
    wanted.forEach((name, i) => {
      const size = ofMember[name].length / (batch * kvHeads);
      for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) {
        const head = (kvHead % kvHeads) * groupSize + member;
        const to = kvHead - (kvHead % kvHeads) + (head % kvHeads);
        for (let at = 0; at < size; at++)
          regrouped[i][to * size + at] += ofMember[name][kvHead * size + at];
      }
    });
    const one = `query head ${member} of each group of ${groupSize}`;
    yield {
      id: 'group-one-head',
      sentence: `${words} ${wanted.length === 1 ? 'has' : 'have'} what ${one} adds, and nothing of the others`,
      predicted: only,
    };
    if (groupSize > 2)
      yield {
        id: 'group-head-missing',
        sentence: `${words} ${wanted.length === 1 ? 'lacks' : 'lack'} what ${one} adds`,
        predicted: without,
      };
  }
  if (kvHeads === 1) return;
  yield {
    id: 'heads-of-another-group',
    sentence: `${words} of each head ${wanted.length === 1 ? 'adds' : 'add'} query heads that are ${kvHeads} apart, in the place of ${groupSize} that follow one another`,
    predicted: Object.fromEntries(wanted.map((name, i) => [name, regrouped[i]])),
  };
}
