import { encodeFromFloat64, formats, patternsOf, type Tensor } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import { featureTensors, scoreTensors, spreadToSlots } from './feature-tensors.js';
import { featureNames, type FeatureName, type Sequence } from './features.js';
import { scatterRows } from './gather-rows.js';
import { cacheName, joinPages } from './joined-pages.js';
import type { Problem } from './problem.js';
import { scaleTensors, storedScales } from './scale-tensors.js';
import type {
  PaddedForm,
  StoredForm,
  StoredProblem,
  StoredTensor,
  StoredTensors,
} from './stored.js';
import { packedRows, placeRows, type Placed } from './stored-forms.js';

/** One element of a format: a number rounded to it; finite numbers stay finite. */
function fillerOf({ format }: Tensor, fill: number): Tensor['data'] {
  const overflow = Number.isFinite(fill) ? 'saturate' : 'overflow';
  return encodeFromFloat64(formats[format], Float64Array.of(fill), { overflow });
}

/** The value of an unused element of a tensor over queries and keys: visible, kept, or the fill. */
function scoreFiller(tensor: StoredTensor, fill: number): ArrayLike<number> {
  if (!('format' in tensor)) return [1];
  return patternsOf(fillerOf(tensor, fill), formats[tensor.format]);
}

function featuresAsPosed(problem: Problem, queries: Placed, keys: Placed, fill: number) {
  const isPadded =
    queries.rows.form === 'padded' || keys.left !== null || keys.rows.form === 'padded';
  const area = { queries: queries.capacity, keys: keys.capacity, left: keys.left };
  return Object.fromEntries(
    Object.entries(featureTensors(problem)).map(([name, tensor]) =>
      isPadded && scoreTensors.includes(name)
        ? [name, spreadToSlots(tensor, area, scoreFiller(tensor, fill))]
        : [name, tensor],
    ),
  );
}

function keysAndValues(k: Tensor, v: Tensor, form: StoredForm['keys']): StoredTensors {
  return form.kind === 'paged' && form.joined === true
    ? { [cacheName]: joinPages(k, v) }
    : { k, v };
}

/** A problem that keeps the form in which it was posed. */
export type PosedProblem = Problem & {
  readonly stored: StoredProblem & { readonly tensors: StoredTensors };
};

/**
 * A problem with packed sequences, posed in a form: the same problem, whose `stored` has the tensors to give to a
 * kernel. Unused slots of queries, keys, values and biases hold `fill`, rounded to each format (finite numbers stay
 * finite; a format without infinity has NaN in its place); unused elements of masks are true.
 * @throws RequestError for a problem without sequences, a sample of rows, and a form that does not fit
 */
export function storeProblem(problem: Problem, form: StoredForm, fill = 0): PosedProblem {
  const { sequences, rows } = problem;
  if (sequences === undefined || rows !== undefined)
    throw new RequestError('only whole problems with packed sequences are stored in a form');
  const lengths = (of: (sequence: Sequence) => number) => sequences.map(of);
  const ofQueries = lengths((one) => one.queries);
  const ofKeys = lengths((one) => one.keys);
  const padded = [form.queries, form.keys].filter(({ kind }) => kind === 'padded') as PaddedForm[];
  if (new Set(padded.map(({ headsFirst = true }) => headsFirst)).size > 1)
    throw new RequestError('queries and keys are padded in different layouts; give them the same');
  const queries = placeRows(problem, 'q', ofQueries, form.queries);
  const keys = placeRows(problem, 'k', ofKeys, form.keys);
  const { q, k, v } = problem;
  const stored = {
    queries: queries.rows,
    keys: keys.rows,
    tensors: {
      q: scatterRows(q, queries.rows, fillerOf(q, fill)),
      ...keysAndValues(
        scatterRows(k, keys.rows, fillerOf(k, fill)),
        scatterRows(v, keys.rows, fillerOf(v, fill)),
        form.keys,
      ),
      ...queries.tensors,
      ...keys.tensors,
      ...featuresAsPosed(problem, queries, keys, fill),
      ...storedScales(problem, { q: queries.rows, k: keys.rows, v: keys.rows }),
    },
    form,
    of: problem,
  };
  return { ...problem, stored };
}

const storedMembers = ['q', 'k', 'v', ...(Object.keys(featureNames) as FeatureName[])] as const;

/**
 * The form in which a problem was posed; null if it is not kept, or if the problem was changed since: a copy of it
 * with another tensor is posed anew.
 */
export function storedOf(problem: Problem): StoredProblem | null {
  const { stored } = problem;
  if (stored === undefined) return null;
  return storedMembers.every((name) => name === 'scales' || problem[name] === stored.of[name])
    ? stored
    : null;
}

/** The layout of a problem's rows as it is posed; packed sequences of unknown form are one behind the other. */
export function posedRows(problem: Problem): Pick<StoredProblem, 'queries' | 'keys'> | null {
  if (problem.sequences === undefined) return null;
  const rows = ({ shape }: Tensor) => packedRows(shape.at(-2) ?? 0);
  return storedOf(problem) ?? { queries: rows(problem.q), keys: rows(problem.k) };
}

/**
 * The tensors to give to a kernel, by their names in a problem file: as the problem was posed, else packed one
 * sequence behind the other, else as the problem has them.
 * @throws RequestError for a sample of rows of packed sequences, and where tensors were not kept
 */
export function posedTensors(problem: Problem): StoredTensors {
  const { q, k, v, sequences } = problem;
  if (sequences === undefined)
    return { q, k, v, ...featureTensors(problem), ...scaleTensors(problem).tensors };
  const stored =
    storedOf(problem) ??
    storeProblem(problem, { queries: { kind: 'packed' }, keys: { kind: 'packed' } }).stored;
  if (stored.tensors === null)
    throw new RequestError('the tensors of this problem were not kept as they are stored');
  return stored.tensors;
}
