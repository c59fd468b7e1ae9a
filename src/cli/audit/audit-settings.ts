import { parseWhole } from '../../words/index.js';
import type { DeclaredFormats, ProblemSettings } from '../../io/index.js';
import { isModel, seededRows, type RowsRequest } from '../../jobs/index.js';
import type { CommandContext } from '../options/command-rows.js';
import { rejectClashes } from '../options/given-options.js';
import { parsePositive, parseProbability } from '../options/parse-values.js';
import { declaredFormats, problemSettings, rowsRequest } from '../options/settings.js';
import { auditOptions, type AuditCommandOptions } from './options.js';

/** Settings from the options, the same for every file that is judged by them. */
export interface AuditSettings {
  readonly options: AuditCommandOptions;
  readonly context: CommandContext;
  readonly problem: ProblemSettings;
  readonly formats: DeclaredFormats;
  readonly timeoutSeconds: number;
  readonly falseAlarmRate: number;
  /** The rows to judge. Its seed is drawn here if it is not given: one seed serves all samples of a file. */
  readonly rows: RowsRequest;
  /** Number of keys to judge dK and dV of; null for all. */
  readonly keys: number | null;
}

/** @throws RequestError for options that do not go together, or do not parse */
export function auditSettings(
  options: AuditCommandOptions,
  context: CommandContext,
): AuditSettings {
  const { kernel, as } = options;
  rejectClashes(auditOptions, options, {
    set: () => kernel !== undefined || (as !== undefined && isModel(as, context.models)),
  });
  return {
    options,
    context,
    problem: problemSettings(options),
    timeoutSeconds: parsePositive(options.timeout, '--timeout'),
    falseAlarmRate: parseProbability(options.falseAlarmRate, '--false-alarm-rate'),
    formats: declaredFormats(options),
    rows: seededRows(rowsRequest(options)),
    keys:
      options.keys === undefined || options.keys === 'all'
        ? null
        : parseWhole(options.keys, '--keys', 1),
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
