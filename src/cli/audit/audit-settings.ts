import type { DeclaredFormats, ProblemSettings } from '../../io/index.js';
import { isModel, type RowsRequest } from '../../jobs/index.js';
import type { CommandContext } from '../options/command-rows.js';
import { rejectClashes } from '../options/given-options.js';
import { parsePositive, parseProbability } from '../options/parse-values.js';
import { declaredFormats, problemSettings, rowsRequest } from '../options/settings.js';
import { auditOptions, type AuditCommandOptions } from './options.js';

/** What the options say: the same for every file that is judged by them. */
export interface AuditSettings {
  readonly options: AuditCommandOptions;
  readonly context: CommandContext;
  readonly problem: ProblemSettings;
  readonly formats: DeclaredFormats;
  readonly timeoutSeconds: number;
  readonly falseAlarmRate: number;
  readonly rows: RowsRequest;
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
    rows: rowsRequest(options),
  };
}

/** The stages of an audit, and how long they take beside each other; last what has no progress. */
export function auditStages({
  identify,
}: AuditCommandOptions): readonly (readonly [string, number])[] {
  return [
    ['oracle', 2],
    ['structure', 5],
    ['bounds', 4],
    ...(identify === true ? [['identification', 12] as const] : []),
    ['report', 1],
  ];
}
