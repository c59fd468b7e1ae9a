import {
  recurrentFormats,
  recurrentLawIds,
  recurrentLaws,
  type RecurrentPromises,
} from '../../../../properties/index.js';
import { recurrentFamilies } from '../../../problem/index.js';
import { nameList } from '../../options/parse-names.js';
import { parseSizes } from '../../options/parse-values.js';
import type { CheckCommandOptions } from '../options.js';
import {
  atLeastOne,
  flag,
  listOf,
  objectOf,
  parsePromise,
  propertyLists,
  readPromises,
} from '../promise-texts.js';

const format = { enum: [...recurrentFormats] };

/** JSON Schema (2020-12) of a file of promises: the members of `RecurrentPromises` that are data. */
const promisesSchema = objectOf({
  families: listOf({ enum: Object.keys(recurrentFamilies) }),
  formats: listOf(format),
  dims: listOf(atLeastOne),
  groupSizes: listOf(atLeastOne),
  packed: flag,
  initialState: { type: 'array', items: format },
  normalisation: flag,
  infiniteGates: flag,
  gradients: flag,
  deterministic: flag,
  chunk: atLeastOne,
  declared: objectOf({
    form: { enum: ['recurrent', 'chunked'] },
    chunk: atLeastOne,
    state: format,
    intermediate: format,
  }),
  laws: objectOf(
    Object.fromEntries(
      recurrentLawIds.map((id) => [id, { enum: [...recurrentLaws[id].strengths, 'none'] }]),
    ),
  ),
});

/** The promises that flags make, without those left open. */
function flaggedPromises(options: CheckCommandOptions): RecurrentPromises {
  const { formats, dims, groupSizes, gradients, deterministic } = options;
  const promises: RecurrentPromises = {
    formats:
      formats === undefined
        ? undefined
        : nameList([formats], recurrentFormats, 'format', '--formats'),
    dims: dims === undefined ? undefined : parseSizes(dims, '--dims', '64,128'),
    groupSizes:
      groupSizes === undefined ? undefined : parseSizes(groupSizes, '--group-sizes', '1,4,8'),
    gradients,
    deterministic,
  };
  return Object.fromEntries(Object.entries(promises).filter(([, value]) => value !== undefined));
}

/**
 * The promises of a kernel of linear attention: from flags, else from the file of --promises, else its own.
 * @param own the promises of an emulated kernel
 * @throws RequestError for a file or a flag that is none of promises
 */
export async function declaredRecurrentPromises(
  own: RecurrentPromises,
  options: CheckCommandOptions,
): Promise<RecurrentPromises> {
  const read =
    options.promises === undefined
      ? {}
      : await readPromises<RecurrentPromises>(options.promises, promisesSchema);
  const promised = (options.promise ?? []).map((text) =>
    parsePromise(text, recurrentLaws, propertyLists.recurrent),
  );
  return {
    ...own,
    ...read,
    ...flaggedPromises(options),
    laws: { ...own.laws, ...read.laws, ...Object.fromEntries(promised) },
  };
}
