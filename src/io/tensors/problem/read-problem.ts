import {
  checkProblem,
  gatherFactors,
  listsName,
  spreadLists,
  type KeyLists,
  type Problem,
  type ScaledTensor,
  type StoredTensors,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, tensorIn } from '../messages.js';
import { readScales, type ScaleReading } from '../scales.js';
import type { TensorFile } from '../tensor-file.js';
import { checkEmptySizes, toHeadsFirst } from './canonical.js';
import { markIntegers, withIntegerOperands } from './integer-operands.js';
import { isLatent, latentValues } from './latent.js';
import { featuresOf, readInputs, rotaryOf, type ReadInputs } from './read-features.js';
import { refuseMisnamedSettings } from './misnamed-settings.js';
import { refuseMisnamedInputs } from './usual-names.js';
import { hasSequences, readSequences, type ReadSequences } from './read-stored.js';
import {
  fileSettings,
  keptNotes,
  problemLayout,
  withoutIgnored,
  type ProblemSettings,
} from './settings.js';

/** q, k and v of batches, heads first. */
async function readBatches(
  file: TensorFile,
  settings: ProblemSettings,
): Promise<Pick<Problem, 'q' | 'k' | 'v'>> {
  const headsFirst = problemLayout(file, settings) === 'bhsd';
  const read = async (name: string) => {
    checkEmptySizes(file, name);
    const tensor = await file.read(name);
    if (tensor.shape.length !== 3 && tensor.shape.length !== 4)
      throw new RequestError(
        `${tensorIn(file.path, name)} has shape [${tensor.shape.join(', ')}]; give it rank 3 [heads, seqlen, dim] or rank 4 [batch, heads, seqlen, dim]`,
      );
    return headsFirst ? tensor : toHeadsFirst(tensor);
  };
  const [q, k] = [await read('q'), await read('k')];
  return { q, k, v: isLatent(file, settings) ? latentValues(k, settings) : await read('v') };
}

type Laws = Pick<Problem, 'scale' | 'causal' | 'window' | 'softcap'>;

/** The settings of a problem's computation; scale 1/√dim by default. */
export function lawsOf(settings: ProblemSettings, dim: number): Laws {
  const { scale, causal, window, softcap } = settings;
  return {
    scale: scale ?? (dim === 0 ? 1 : 1 / Math.sqrt(dim)),
    causal: causal ?? false,
    window: window ?? null,
    softcap: softcap ?? null,
  };
}

/**
 * The given settings, completed by those that the file notes.
 * @throws RequestError for settings that do not parse, and for settings or q, k and v that the file has under names that nothing reads
 */
export function settledSettings(file: TensorFile, given: ProblemSettings): ProblemSettings {
  const told = Object.entries(given).filter(([, value]) => value !== undefined);
  const settled = { ...fileSettings(file, given), ...Object.fromEntries(told) };
  refuseMisnamedSettings(file, settled);
  refuseMisnamedInputs(file);
  return settled;
}

/** The tensors as posed, with lists of positions. */
function withPositions({ stored }: ReadSequences, lists: KeyLists): StoredTensors | null {
  const { tensors, queries } = stored;
  if (tensors === null) return null;
  return { ...tensors, [listsName(lists)]: spreadLists(lists.indices, queries) };
}

async function readWith(
  given: TensorFile,
  inputs: ReadInputs,
  settings: ProblemSettings,
): Promise<Problem> {
  const file = withIntegerOperands(given);
  const headsFirst = problemLayout(file, settings) === 'bhsd';
  const withScales = (problem: Problem, lie: Pick<ScaleReading, 'rankOf' | 'arrange'>) =>
    readScales(withoutIgnored(file, settings), problem, {
      notes: keptNotes(file, settings),
      ...lie,
      given: settings.descales,
    });
  // The values of a latent cache have the factors of its keys.
  const valued = (problem: Problem): Problem =>
    isLatent(file, settings) ? { ...problem, v: latentValues(problem.k, settings) } : problem;
  if (!hasSequences(inputs)) {
    const tensors = await readBatches(file, settings);
    const laws = lawsOf(settings, tensors.q.shape.at(-1) ?? 0);
    const problem = {
      ...tensors,
      ...laws,
      ...featuresOf(inputs, settings, null),
      ...rotaryOf(inputs),
    };
    const scaled = await withScales(problem, {
      rankOf: (name) => tensors[name].shape.length,
      arrange: (_, factors) => (headsFirst ? factors : toHeadsFirst(factors)),
    });
    return valued(markIntegers(given, scaled, { q: 'q', k: 'k', v: 'v' }));
  }
  const read = await readSequences(file, inputs, settings);
  const { sequences, placed } = read;
  const laws = lawsOf(settings, read.tensors.q.shape.at(-1) ?? 0);
  const features = featuresOf(inputs, settings, placed);
  const { queries, keys } = read.stored;
  const rowsOf = (name: ScaledTensor) => (name === 'q' ? queries : keys);
  const scaled = await withScales(
    { ...read.tensors, ...laws, ...features, ...rotaryOf(inputs), sequences },
    {
      rankOf: (name) => (rowsOf(name).form === 'packed' ? 3 : 4),
      arrange: (name, factors) => gatherFactors(factors, rowsOf(name)),
    },
  );
  const problem = valued(markIntegers(given, scaled, read.names));
  const { keyLists } = features;
  const tensors = keyLists === undefined ? read.stored.tensors : withPositions(read, keyLists);
  return { ...problem, stored: { ...read.stored, tensors, of: problem } };
}

/**
 * The problem that a file holds: tensors `q`, `k`, `v`, and the others that `problemInputs` lists; its computation
 * follows from the settings, else the file's metadata, else FlashAttention's defaults (scale 1/√d, no mask). Sequences
 * that are packed, padded or in pages become one behind the other, and `stored` keeps their places.
 * @throws RequestError when a tensor is missing, or shapes, elements or settings do not fit together
 */
export async function readProblem(
  file: TensorFile,
  settings: ProblemSettings = {},
): Promise<Problem> {
  const settled = settledSettings(file, settings);
  try {
    const problem = await readWith(file, await readInputs(file, settled), settled);
    checkProblem(problem);
    return problem;
  } catch (error) {
    if (!(error instanceof RequestError) || error.message.startsWith(printable(file.path)))
      throw error;
    throw new RequestError(`${printable(file.path)}: ${error.message}`);
  }
}
