import { availableParallelism } from 'node:os';
import {
  compiledSource,
  emulatedSource,
  isModel,
  liveSource,
  seededRows,
  type AuditSettings,
} from '../../jobs/index.js';
import { recurrentPresets } from '../../audit/index.js';
import { parseFamily, parseNormalisation, parseStateLayout } from '../../io/index.js';
import { parseWhole } from '../../words/index.js';
import type { CommandContext } from '../options/command-rows.js';
import { rejectClashes } from '../options/given-options.js';
import { parsePositive, parseProbability } from '../options/parse-values.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  rowsRequest,
  tensorPlaces,
  textsByKey,
} from '../options/settings.js';
import { toolVersion } from '../tool-version.js';
import { flagOf, isGiven, negatedFlag } from '../options/option-rows.js';
import {
  attentionKeys,
  auditOptions,
  recurrentKeys,
  softmaxKeys,
  type AuditCommandOptions,
} from './options.js';

/** A run of `flashproof audit`: its options, and what they set for every file. */
export interface AuditRun {
  readonly options: AuditCommandOptions;
  readonly settings: AuditSettings;
  readonly lasting: CommandContext['lasting'];
}

/** The flags of the options among some that are given. */
function givenFlags(
  options: AuditCommandOptions,
  keys: readonly (keyof typeof auditOptions)[],
): readonly string[] {
  return keys
    .filter((key) => isGiven(auditOptions[key], options[key]))
    .map((key) => (options[key] === false ? negatedFlag(key) : flagOf(key)));
}

/** What options say of linear attention. @throws RequestError for one that does not parse */
function recurrenceSettings({
  family,
  stateLayout,
  normalisation,
}: AuditCommandOptions): AuditSettings['recurrence'] {
  return {
    family: family === undefined ? undefined : parseFamily(family, '--family'),
    stateLayout:
      stateLayout === undefined ? undefined : parseStateLayout(stateLayout, '--state-layout'),
    normalisation:
      normalisation === undefined
        ? undefined
        : parseNormalisation(normalisation, '--normalisation'),
  };
}

/** @throws RequestError for options that do not go together, or do not parse */
export function auditSettings(
  options: AuditCommandOptions,
  models: CommandContext['models'],
): AuditSettings {
  const { kernel, exec, launch, as, set, dout, keys, threads = availableParallelism() } = options;
  rejectClashes(auditOptions, options, {
    set: () =>
      kernel !== undefined ||
      (as !== undefined && !Object.hasOwn(recurrentPresets, as) && isModel(as, models)),
  });
  const problem = problemSettings(options);
  const timeoutSeconds = parsePositive(options.timeout, '--timeout');
  const falseAlarmRate = parseProbability(options.falseAlarmRate, '--false-alarm-rate');
  const formats = declaredFormats(options);
  const rows = seededRows(rowsRequest(options));
  const modelSettings = () => kernelSettings(set);
  const isSample = typeof rows.count === 'number';
  const source = () => {
    if (kernel !== undefined)
      return emulatedSource({ kernel, set, modelSettings, dout, isSample, threads, models });
    if (launch !== undefined) return compiledSource(launch, dout);
    return exec === undefined ? null : liveSource(exec, timeoutSeconds);
  };
  return {
    ...options,
    version: toolVersion(),
    problem,
    recurrence: recurrenceSettings(options),
    softmaxOptions: givenFlags(options, softmaxKeys),
    recurrentOptions: givenFlags(options, recurrentKeys),
    attentionOptions: givenFlags(options, attentionKeys),
    linkOptions: givenFlags(options, ['note']),
    link: {
      tensors: tensorPlaces(options),
      notes: Object.fromEntries(textsByKey(options.note, '--note')),
    },
    formats,
    source: source(),
    modelSettings,
    models,
    falseAlarmRate,
    rows,
    keys: keys === undefined ? null : keys === 'all' ? keys : parseWhole(keys, '--keys', 1),
    plots: options.html !== undefined,
    threads,
  };
}

/** The stages of an audit, and their relative durations; last the work that has no progress. */
export function auditStages({
  identify,
}: AuditCommandOptions): readonly (readonly [string, number])[] {
  return [
    ['oracle', 2],
    ['yardstick', 1],
    ['structure', 5],
    ['bounds', 4],
    ...(identify === true ? [['identification', 12] as const] : []),
    ['report', 1],
  ];
}
