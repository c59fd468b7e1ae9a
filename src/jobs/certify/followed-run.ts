import { ExpressionDomain } from '../../meaning/domains/index.js';
import { outputValues, type OutputValues } from '../../meaning/certify/index.js';
import { createRecorder, type Recorder, type TracedInput } from '../../meaning/record/index.js';
import { valueFormat } from '../../meaning/trace/index.js';
import { lineOfSite, type SourceLine } from '../../ptx/syntax/index.js';
import type { OpenedLaunch } from '../launch/open-launch.js';
import {
  openRequest,
  runOpened,
  type RunOutput,
  type RunRequest,
  type RunResult,
} from '../launch/run-launch-file.js';
import type { CertificatePlace } from './certificate.js';
import type { InputNames } from './input-names.js';

/** Formats of values by the dtype of their tensor: numbers, and integers that are data. Wider ones say where something lies. */
const valueTypes: Readonly<Record<string, string>> = {
  F64: 'f64',
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
  F8_E4M3: 'e4m3',
  F8_E5M2: 'e5m2',
  F8_E8M0: 'ue8m0',
  I8: 's8',
  U8: 'u8',
};

/** Formats of outputs, of any type. */
const outputTypes: Readonly<Record<string, string>> = {
  ...valueTypes,
  I16: 's16',
  I32: 's32',
  I64: 's64',
  U16: 'u16',
  U32: 'u32',
  U64: 'u64',
  BOOL: 'u8',
};

/** A run whose values were followed. */
export interface FollowedRun {
  readonly result: RunResult;
  readonly recorder: Recorder;
  readonly outputs: readonly OutputValues[];
  /** Outputs of types whose values are not followed. */
  readonly unfollowed: readonly Pick<RunOutput, 'name' | 'dtype'>[];
}

function inputsOf({ launch }: OpenedLaunch): readonly TracedInput[] {
  return launch.tensors.flatMap(({ name, dtype }) => {
    const format = valueFormat(valueTypes[dtype] ?? '');
    return format === null ? [] : [{ tensor: name, format }];
  });
}

/** The tracer of a run, from its recorder: the recorder's own, or one that adds to it. */
type TracerOf = (recorder: Recorder) => Recorder['tracer'];

/** Runs a launch and follows its values. @throws RequestError as `runLaunchFile` does */
export async function followLaunch(
  request: RunRequest,
  progress: (share: number) => void,
  tracerOf?: TracerOf,
): Promise<FollowedRun> {
  return followOpened(await openRequest(request), request, progress, tracerOf);
}

/** Runs a launch that is opened already, and follows its values; of the request its settings count. */
export async function followOpened(
  opened: OpenedLaunch,
  request: RunRequest,
  progress: (share: number) => void = () => undefined,
  tracerOf: TracerOf = ({ tracer }) => tracer,
): Promise<FollowedRun> {
  const recorder = createRecorder(inputsOf(opened));
  const tracer = tracerOf(recorder);
  const result = await runOpened(opened, request, progress, { values: tracer });
  const outputs: OutputValues[] = [];
  const unfollowed: RunOutput[] = [];
  for (const output of result.outputs) {
    const values = outputValues(recorder, output.name, outputTypes[output.dtype] ?? '');
    if (values === null) unfollowed.push(output);
    else outputs.push(values);
  }
  return { result, recorder, outputs, unfollowed };
}

/** Hashes of the expressions of a run, whose inputs have names. */
export function hashExpressions(
  { recorder, result }: FollowedRun,
  { name }: InputNames,
): ExpressionDomain {
  const domain = new ExpressionDomain(recorder.trace, result.run.architecture, name);
  domain.extend();
  return domain;
}

/** The place of a site, with its source. */
export function placeOf(site: string, sources: ReadonlyMap<number, SourceLine>): CertificatePlace {
  const line = lineOfSite(site);
  return { site, source: line === null ? null : (sources.get(line) ?? null) };
}
