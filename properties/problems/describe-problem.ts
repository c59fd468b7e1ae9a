import { decodeToFloat64, formats } from '../../src/formats/index.js';
import {
  featureNames,
  problemFeatures,
  readFeatures,
  type Problem,
  type Tensor,
} from '../../src/problem/index.js';
import { decodeProblem, tensorNames, tensorShape } from './plain-problem.js';

/** The most elements of a tensor that are shown. */
const shownElements = 64;

function describeValues(values: Float64Array): string {
  const shown = Array.from(values.subarray(0, shownElements), (x) => (Object.is(x, -0) ? '-0' : x));
  const rest = values.length - shown.length;
  return `[${shown.join(', ')}${rest > 0 ? `, … ${rest} more` : ''}]`;
}

function describeTensor({
  shape,
  data,
}: {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}): string {
  return `[${shape.join(', ')}] = ${describeValues(Float64Array.from(data))}`;
}

/** The factors of the elements of Q, K and V, in words. */
function describeFactors(problem: Problem): string {
  const texts = tensorNames.flatMap((name) =>
    (problem[name].scales?.factors ?? []).map(
      ({ name: kind, shape, values }) =>
        `${name}_${kind} ${describeTensor({ shape, data: values })}`,
    ),
  );
  return texts.join(', ');
}

/** The features of a problem beside its tensors and settings, a clause each. */
function describeFeatures(problem: Problem): string[] {
  const decoded = ({ shape, format, data }: Tensor) =>
    `${format} ${describeTensor({ shape, data: decodeToFloat64(data, formats[format]) })}`;
  const texts = readFeatures(problem, {
    mask: (mask) => `mask ${describeTensor(mask)}`,
    bias: (bias) => `bias ${decoded(bias)}`,
    alibiSlopes: (slopes) => `ALiBi slopes ${decoded(slopes)}`,
    sink: ({ logits, inLse }) => `sink ${decoded(logits)} ${inLse ? 'in' : 'not in'} the LSE`,
    segments: ({ queries, keys }) =>
      `segments of queries ${describeTensor(queries)}, of keys ${describeTensor(keys)}`,
    prefix: (prefix) => `prefix ${prefix}`,
    blockMask: ({ blockQueries, blockKeys, counts, indices }) =>
      `blocks of ${blockQueries} × ${blockKeys}, numbers ${describeTensor(counts)}, indices ${describeTensor(indices)}`,
    keyLists: ({ indices, blockKeys, blockQueries }) =>
      `lists ${describeTensor(indices)} of blocks of ${blockKeys} keys for ${blockQueries} queries`,
    dropout: ({ probability, kept }) => `dropout ${probability}, kept ${describeTensor(kept)}`,
    sequences: (sequences) =>
      `sequences of queries × keys ${sequences.map(({ queries, keys }) => `${queries} × ${keys}`).join(', ')}`,
    keyRanges: () => featureNames.keyRanges,
    rows: () => featureNames.rows,
  });
  const hasScales = problemFeatures(problem).includes('scales');
  return [...texts, ...(hasScales ? [describeFactors(problem)] : [])];
}

/**
 * A problem in a few lines: settings, then each tensor's format, shape and values (the first 64).
 * @throws RequestError when the problem's shapes do not fit together
 */
export function describeProblem(problem: Problem): string {
  return describeCase({ problem });
}

/**
 * The description of a problem, and a line for the gradient of its output where there is one.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function describeCase({
  problem,
  dout,
}: {
  readonly problem: Problem;
  readonly dout?: Tensor | undefined;
}): string {
  const plain = decodeProblem(problem);
  const { window, softcap } = plain;
  const settings = [
    `scale ${plain.scale}`,
    ...(plain.causal ? ['causal'] : []),
    ...(window === null ? [] : [`window ${window.left},${window.right}`]),
    ...(softcap === null ? [] : [`softcap ${softcap}`]),
    ...describeFeatures(problem),
  ];
  const tensors = tensorNames.map(
    (name) =>
      `${name}: ${plain.formats[name]} [${tensorShape(name, plain.sizes).join(', ')}] = ${describeValues(plain.values[name])}`,
  );
  const ofOutput =
    dout === undefined
      ? []
      : [
          `dout: ${dout.format} [${dout.shape.join(', ')}] = ${describeValues(decodeToFloat64(dout.data, formats[dout.format]))}`,
        ];
  return [`attention problem, ${settings.join(', ')}`, ...tensors, ...ofOutput].join('\n');
}
