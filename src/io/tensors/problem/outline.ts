import {
  problemFeatures,
  problemShape,
  type Problem,
  type Tensor,
} from '../../../problem/index.js';
import { scaleTensorNames } from '../scales.js';
import type { TensorFile } from '../tensor-file.js';
import { inputOf, problemInputNames } from './inputs.js';
import { lawsOf, settledSettings } from './read-problem.js';
import { featuresOf } from './read-features.js';
import { keptNotes, problemLayout, type ProblemSettings } from './settings.js';

/** A tensor by its format and shape, whose elements stay in its file; null for one that no number format is of. */
function unreadTensor(file: TensorFile, name: string): Tensor | null {
  const entry = file.entries.get(name);
  if (entry === undefined || entry.format === null || entry.elements === 0) return null;
  // Who reads a part at a time reads elements as they are stored.
  if (entry.storedAs !== undefined) return null;
  return {
    format: entry.format,
    shape: entry.shape,
    get data(): never {
      throw new Error(`the elements of ${name} are in the file`);
    },
  };
}

/** Whether a file has anything that is read beside q, k and v. */
function hasMore(file: TensorFile, settings: ProblemSettings): boolean {
  const { ignored = [], descales = {} } = settings;
  return (
    Object.keys(descales).length > 0 ||
    problemInputNames.some((name) => inputOf(file, name, settings) !== null) ||
    scaleTensorNames.some((name) => file.entries.has(name) && !ignored.includes(name)) ||
    Object.keys(keptNotes(file, settings)).some((key) => /^[qkv]_.*scale/.test(key))
  );
}

/**
 * The problem that a file holds, without its elements: for who reads them a part at a time. Whoever asks its q, k
 * or v for their elements gets an error.
 * @returns null where `readProblem` does more than to read q, k and v as they lie: for features, scales and another
 * layout, and for tensors that it refuses
 * @throws RequestError for shapes and settings that do not fit together
 */
export function problemOutline(file: TensorFile, given: ProblemSettings): Problem | null {
  const settings = settledSettings(file, given);
  if (problemLayout(file, settings) !== 'bhsd' || hasMore(file, settings)) return null;
  const [q, k, v] = ['q', 'k', 'v'].map((name) => unreadTensor(file, name));
  if (q === null || k === null || v === null) return null;
  if ([q, k, v].some(({ shape }) => shape.length !== 3 && shape.length !== 4)) return null;
  const problem = {
    q,
    k,
    v,
    ...lawsOf(settings, q.shape.at(-1)!),
    ...featuresOf({}, settings, null),
  };
  if (problemFeatures(problem).length > 0) return null;
  problemShape(problem);
  return problem;
}
