import type { Problem } from '../src/problem/index.js';
import { decodeProblem, tensorNames, tensorShape } from './plain-problem.js';

/** Longer tensors are cut. */
const shownElements = 64;

function describeValues(values: Float64Array): string {
  const shown = Array.from(values.subarray(0, shownElements), (x) => (Object.is(x, -0) ? '-0' : x));
  const rest = values.length - shown.length;
  return `[${shown.join(', ')}${rest > 0 ? `, … ${rest} more` : ''}]`;
}

/**
 * A problem in a few lines: settings, then each tensor's format, shape and values (the first 64).
 * @throws RequestError when the problem's shapes do not fit together
 */
export function describeProblem(problem: Problem): string {
  const plain = decodeProblem(problem);
  const { window, softcap } = plain;
  const settings = [
    `scale ${plain.scale}`,
    ...(plain.causal ? ['causal'] : []),
    ...(window === null ? [] : [`window ${window.left},${window.right}`]),
    ...(softcap === null ? [] : [`softcap ${softcap}`]),
  ];
  const tensors = tensorNames.map(
    (name) =>
      `${name}: ${plain.formats[name]} [${tensorShape(name, plain.sizes).join(', ')}] = ${describeValues(plain.values[name])}`,
  );
  return `attention problem, ${settings.join(', ')}\n${tensors.join('\n')}`;
}
