import { listed } from '../../../../words/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import { gradientsOf, withRowFactors } from '../changed-gradients.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type PredictedGradients, type Prediction } from '../prediction.js';

const ofKeys = ['dk', 'dv'] as const;

/** The prediction, for those heads of K and V whose gradients are nearer to it than to the exact ones. */
function whereNearer(failed: FailedGradients, predicted: PredictedGradients): PredictedGradients {
  const { shape, gradients } = failed.measured;
  const heads = shape.batch * shape.kvHeads;
  const chosen = failed.given.flatMap(({ quantity: { name }, values }) => {
    const other = predicted[name];
    if (other === undefined) return [];
    const { values: exact } = gradients[name].exact;
    const size = exact.length / heads;
    const made = exact.slice();
    for (let head = 0; head < heads; head++) {
      let [own, away] = [0, 0];
      for (let i = head * size; i < (head + 1) * size; i++) {
        own += (values[i] - exact[i]) ** 2;
        away += (values[i] - other[i]) ** 2;
      }
      if (away < own) made.set(other.subarray(head * size, (head + 1) * size), head * size);
    }
    return [[name, made] as const];
  });
  return Object.fromEntries(chosen) as PredictedGradients;
}

/** Groups of query heads whose dK and dV have one head only, or all but one. */
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
  // The share of head h of each batch entry and group is known once heads of one number in their groups are left
  // alone.
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
      predicted: whereNearer(failed, only),
    };
    if (groupSize > 2)
      yield {
        id: 'group-head-missing',
        sentence: `${words} ${wanted.length === 1 ? 'lacks' : 'lack'} what ${one} adds`,
        predicted: whereNearer(failed, without),
      };
  }
  if (kvHeads === 1) return;
  yield {
    id: 'heads-of-another-group',
    sentence: `${words} of each head ${wanted.length === 1 ? 'adds' : 'add'} query heads that are ${kvHeads} apart, in the place of ${groupSize} that follow one another`,
    predicted: Object.fromEntries(wanted.map((name, i) => [name, regrouped[i]])),
  };
}
