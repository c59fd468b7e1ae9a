import { recurrentTensorName } from '../../../src/problem/index.js';
import { axesOf } from './axes.js';
import {
  axisSizes,
  givenInputs,
  plainRecurrence,
  type PosedRecurrence,
} from './plain-recurrence.js';

/** The most elements of a tensor that are shown. */
const shownElements = 64;

function describeValues(values: Float64Array): string {
  const shown = Array.from(values.subarray(0, shownElements), (x) => (Object.is(x, -0) ? '-0' : x));
  const rest = values.length - shown.length;
  return `[${shown.join(', ')}${rest > 0 ? `, … ${rest} more` : ''}]`;
}

/**
 * A problem in a few lines: its settings, then each tensor's format, shape and values (the first 64). Tokens are counted over all sequences.
 * @throws RequestError when its shapes do not fit together
 */
export function describeRecurrence(posed: PosedRecurrence): string {
  const plain = plainRecurrence(posed);
  const { family, lengths, isPacked, scale, epsilon, steps } = plain;
  const sizes = axisSizes(plain);
  const settings = [
    family,
    isPacked
      ? `packed sequences of ${lengths.join(', ')} tokens`
      : `batch ${lengths.length} of ${lengths[0] ?? 0} tokens`,
    ...(scale === null ? [] : [`scale ${scale}`]),
    ...(epsilon === null ? [] : [`normalised with epsilon ${epsilon}`]),
    ...(steps?.dtSoftplus === true ? ['softplus of dt'] : []),
    ...(steps === null ? [] : [`Δ from ${steps.dtLimit.join(' to ')}`]),
  ];
  const tensors = givenInputs(plain).map(([name, { format, values }]) => {
    const shape = axesOf(name, family).map((axis) => sizes[axis]);
    return `${recurrentTensorName(family, name)}: ${format} [${shape.join(', ')}] = ${describeValues(values)}`;
  });
  return [`recurrence, ${settings.join(', ')}`, ...tensors].join('\n');
}
