import { premiseNames } from '../../audit/index.js';
import { formats } from '../../formats/index.js';
import { lawIds, scaleKinds, type SizeName } from '../../../properties/index.js';

const flag = { type: 'boolean' };
const size = { type: 'integer', minimum: 0 };
const atLeastOne = { type: 'integer', minimum: 1 };
/** Every size; a table, so that the compiler tells when one is missing. */
const sizes: Readonly<Record<SizeName, true>> = {
  batch: true,
  kvHeads: true,
  groupSize: true,
  queries: true,
  keys: true,
  qkDim: true,
  vDim: true,
};

function listOf(items: object): object {
  return { type: 'array', minItems: 1, items };
}

function objectOf(properties: object): object {
  return { type: 'object', additionalProperties: false, properties };
}

/**
 * JSON Schema (2020-12) of a file of promises: the members of `KernelPromises` that are data. The
 * strengths that each law has are for `resolvePromises` to judge.
 */
export const promisesSchema: object = objectOf({
  formats: listOf({ enum: Object.keys(formats) }),
  dims: listOf(atLeastOne),
  causal: { enum: [true, false, 'only'] },
  window: flag,
  softcap: flag,
  groupedHeads: flag,
  emptyRows: flag,
  specialValues: flag,
  lse: flag,
  scales: listOf({ enum: [...scaleKinds] }),
  sizes: objectOf(
    Object.fromEntries(
      Object.keys(sizes).map((name) => [name, objectOf({ min: size, max: size })]),
    ),
  ),
  blockKeys: atLeastOne,
  rescaleThreshold: { type: 'number', minimum: 0 },
  premises: {
    anyOf: [
      { type: 'string' },
      objectOf(
        Object.fromEntries(
          premiseNames.map((name) => [name, { anyOf: [{ type: 'string' }, { type: 'number' }] }]),
        ),
      ),
    ],
  },
  laws: objectOf(Object.fromEntries(lawIds.map((id) => [id, { enum: ['bits', 'bound', 'none'] }]))),
  groupSizes: listOf(atLeastOne),
  multiples: objectOf(Object.fromEntries(Object.keys(sizes).map((name) => [name, atLeastOne]))),
});
