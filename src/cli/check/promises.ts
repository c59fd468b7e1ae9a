import { premiseNames } from '../../audit/index.js';
import { plainFormats } from '../../formats/index.js';
import {
  featureKinds,
  type KernelPromises,
  lawIds,
  laws,
  scaleKinds,
  type SizeName,
  sizeNames,
} from '../../../properties/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import type { CommandContext } from '../options/command-rows.js';
import type { CheckCommandOptions } from './options.js';
import { declaredPremises } from '../../jobs/index.js';
import { nameList, parseName } from '../options/parse-names.js';
import { parseSizes } from '../options/parse-values.js';
import {
  atLeastOne,
  flag,
  listOf,
  objectOf,
  parsePromise,
  propertyLists,
  readPromises,
} from './promise-texts.js';

const size = { type: 'integer', minimum: 0 };
/** Every size; a table, so that the compiler reports a missing one. */
const sizes: Readonly<Record<SizeName, true>> = {
  batch: true,
  kvHeads: true,
  groupSize: true,
  queries: true,
  keys: true,
  qkDim: true,
  vDim: true,
};

/**
 * JSON Schema (2020-12) of a file of promises: the members of `KernelPromises` that are data. The
 * strengths that each law has are for `resolvePromises` to judge.
 */
const promisesSchema = objectOf({
  formats: listOf({ enum: [...plainFormats] }),
  dims: listOf(atLeastOne),
  causal: { enum: [true, false, 'only'] },
  window: flag,
  softcap: flag,
  features: listOf({ enum: [...featureKinds] }),
  groupedHeads: flag,
  emptyRows: flag,
  specialValues: flag,
  lse: flag,
  gradients: flag,
  deterministic: flag,
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

/** The sizes of --multiples. @throws RequestError for anything but size=number, with commas */
function parseMultiples(text: string): KernelPromises['multiples'] {
  const entries = text.split(',').map((part) => {
    const [name = '', multiple = '', ...rest] = part.split('=');
    if (rest.length > 0 || !/^\s*\d+\s*$/.test(multiple) || Number(multiple) < 1)
      throw new RequestError(
        `--multiples is ${JSON.stringify(text)}; give sizes and positive whole numbers, as in keys=64,queries=128`,
      );
    return [parseName(name.trim(), sizeNames, 'size', '--multiples'), Number(multiple)] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * The promise made by --causal-only, or by --no-causal or --causal.
 * @throws RequestError for two that contradict
 */
function promisedCausal({ causal, causalOnly }: CheckCommandOptions): KernelPromises['causal'] {
  if (causalOnly !== true) return causal;
  if (causal !== undefined)
    throw new RequestError(
      `--causal-only and --${causal ? '' : 'no-'}causal contradict each other; leave out one`,
    );
  return 'only';
}

function threshold(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value < Infinity))
    throw new RequestError(`--rescale-threshold is ${JSON.stringify(text)}; give a number from 0`);
  return value;
}

/** The promises that flags make, without those left open. */
function flaggedPromises(options: CheckCommandOptions): KernelPromises {
  const { window, softcap, groupedHeads, emptyRows, specialValues } = options;
  const known = plainFormats;
  const promises: KernelPromises = {
    causal: promisedCausal(options),
    window,
    softcap,
    groupedHeads,
    emptyRows,
    specialValues,
    lse: options.needsLse,
    gradients: options.gradients,
    deterministic: options.deterministic,
    formats:
      options.formats === undefined
        ? undefined
        : nameList([options.formats], known, 'format', '--formats'),
    features:
      options.features === undefined
        ? undefined
        : nameList([options.features], featureKinds, 'feature', '--features'),
    dims: options.dims === undefined ? undefined : parseSizes(options.dims, '--dims', '64,128'),
    groupSizes:
      options.groupSizes === undefined
        ? undefined
        : parseSizes(options.groupSizes, '--group-sizes', '1,4,8'),
    multiples: options.multiples === undefined ? undefined : parseMultiples(options.multiples),
    blockKeys:
      options.blockKeys === undefined
        ? undefined
        : parseWhole(options.blockKeys, '--block-keys', 1),
    rescaleThreshold:
      options.rescaleThreshold === undefined ? undefined : threshold(options.rescaleThreshold),
  };
  return Object.fromEntries(Object.entries(promises).filter(([, value]) => value !== undefined));
}

/**
 * The promises of a kernel: from flags, else from the file of --promises, else its own.
 * @param own the promises of an emulated kernel
 * @throws RequestError for a file or a flag that is none of promises
 */
export async function declaredPromises(
  own: KernelPromises,
  options: CheckCommandOptions,
  { models }: CommandContext = {},
): Promise<KernelPromises> {
  const read =
    options.promises === undefined
      ? {}
      : await readPromises<KernelPromises>(options.promises, promisesSchema);
  const promised = Object.fromEntries(
    (options.promise ?? []).map((text) => parsePromise(text, laws, propertyLists.attention)),
  );
  const { as, premise, strictPremises } = options;
  const declared =
    as === undefined && premise === undefined ? null : declaredPremises({ as, premise, models });
  return {
    ...own,
    ...read,
    ...flaggedPromises(options),
    ...(declared === null ? {} : { premises: declared }),
    ...(strictPremises === undefined ? {} : { strictPremises }),
    laws: { ...own.laws, ...read.laws, ...promised },
  };
}
