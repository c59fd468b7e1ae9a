import { ExpressionDomain } from '../../meaning/domains/index.js';
import { outputValues, type OutputValues } from '../../meaning/certify/index.js';
import { createRecorder, type Recorder, type TracedInput } from '../../meaning/record/index.js';
import { valueFormat } from '../../meaning/trace/index.js';
import { lineOfSite, sourceLines } from '../../ptx/syntax/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { type ChainRequest, openChain, type OpenedChain } from '../launch/open-chain.js';
import type { OpenedLaunch } from '../launch/open-launch.js';
import {
  runOpened,
  type RunOutput,
  type RunRequest,
  type RunResult,
} from '../launch/run-launch-file.js';
import type { CertificatePlace } from './certificate.js';
import { CarriedTensors } from './carried-tensors.js';
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

/** A run whose values were followed, of a launch or of a chain of launches. */
export interface FollowedRun {
  /** The run; of a chain that of its last launch, with the outputs of the chain and the findings of all. */
  readonly result: RunResult;
  /** The runs of the launches in their order. */
  readonly launches: readonly RunResult[];
  readonly chain: OpenedChain;
  readonly recorder: Recorder;
  readonly outputs: readonly OutputValues[];
  /** Outputs of types whose values are not followed. */
  readonly unfollowed: readonly Pick<RunOutput, 'name' | 'dtype'>[];
  /** Tensors that a launch was recorded with other bytes of than the launches before it leave in them. */
  readonly recordedOtherwise: readonly { readonly launch: number; readonly tensor: string }[];
}

function inputsOf({ launch }: OpenedLaunch, buffers: ReadonlySet<string>): readonly TracedInput[] {
  return launch.tensors.flatMap(({ name, dtype }) => {
    const format = valueFormat(valueTypes[dtype] ?? '');
    return format === null || buffers.has(name) ? [] : [{ tensor: name, format }];
  });
}

/** The tracer of a run, from its recorder: the recorder's own, or one that adds to it. */
type TracerOf = (recorder: Recorder) => Recorder['tracer'];

/** Runs a launch, and those that follow it, and follows its values. @throws RequestError as `openChain` does, and for what the machine does not support */
export async function followLaunch(
  request: RunRequest & ChainRequest,
  progress: (share: number) => void,
): Promise<FollowedRun> {
  return followOpened(await openChain(request), request, progress);
}

/** Runs launches that are opened already, one after another, and follows their values; of the request its settings count. */
export async function followOpened(
  chain: OpenedChain,
  request: RunRequest,
  progress: (share: number) => void = () => undefined,
  tracerOf: TracerOf = ({ tracer }) => tracer,
): Promise<FollowedRun> {
  const tensors = new CarriedTensors();
  const results: RunResult[] = [];
  const buffers = chain.launches.flatMap(({ file }) => file.buffers);
  // What a buffer begins with is said by the first launch that names it.
  const zeros = new Map([...buffers].reverse().map((one) => [one.name, one.zeros]));
  const blank = new Set(zeros.keys());
  const unwritten = new Set([...blank].filter((name) => zeros.get(name) === false));
  let known: Recorder | null = null;
  for (const [i, opened] of chain.launches.entries()) {
    const where = chain.launches.length === 1 ? '' : whereOf(i + 1);
    const start = { before: known, where, unwritten };
    const recorder: Recorder = createRecorder(inputsOf(opened, blank), undefined, start);
    const result = await runOpened(
      tensors.giveTo(opened, i + 1),
      request,
      (share) => progress((i + share) / chain.launches.length),
      { values: tracerOf(recorder) },
    );
    tensors.keep(result);
    results.push(result);
    const stores: Recorder['stores'] = new Map([...(known?.stores ?? []), ...recorder.stores]);
    known = { ...recorder, stores };
  }
  const [result, recorder] = [joinResults(chain, results, tensors), known!];
  const outputs: OutputValues[] = [];
  const unfollowed: RunOutput[] = [];
  for (const output of result.outputs) {
    const values = outputValues(recorder, output.name, outputTypes[output.dtype] ?? '');
    if (values === null) unfollowed.push(output);
    else outputs.push(values);
  }
  const { recordedOtherwise } = tensors;
  return { result, launches: results, chain, recorder, outputs, unfollowed, recordedOtherwise };
}

/** The results of a chain as those of one launch. @throws RequestError for launches of several architectures */
function joinResults(
  { whole }: OpenedChain,
  launches: readonly RunResult[],
  tensors: CarriedTensors,
): RunResult {
  const [last] = launches.slice(-1);
  if (launches.length === 1) return last;
  const other = launches.find(({ run }) => run.architecture !== last.run.architecture);
  if (other !== undefined)
    throw new RequestError(
      `${plainText(other.opened.path)} runs on ${other.run.architecture}, ${plainText(last.opened.path)} on ${last.run.architecture}; give launches of one architecture, or --architecture`,
    );
  const outputs = whole.launch.outputs.flatMap(({ name }) => {
    const tensor = tensors.get(name);
    return tensor === undefined ? [] : [{ ...tensor, recorded: null }];
  });
  const speaksForAllSchedules = launches.every(({ run }) => run.speaksForAllSchedules);
  return {
    ...last,
    opened: whole,
    outputs,
    run: { ...last.run, speaksForAllSchedules },
    findings: launches.flatMap(({ findings }) => findings),
    seconds: launches.reduce((sum, { seconds }) => sum + seconds, 0),
  };
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

/** What the places of a launch of a chain begin with, from its number. */
function whereOf(launch: number): string {
  return `launch ${launch}, `;
}

/** Places of a run from its sites: with their launch, where there are several, and their source. */
export function placesOf({ launches }: FollowedRun): (site: string) => CertificatePlace {
  const sources = launches.map(({ opened }) => sourceLines(opened.module));
  return (all) => {
    const [where = '', number] = /^launch (\d+), /.exec(all) ?? [];
    const launch = number === undefined ? null : Number(number);
    const site = all.slice(where.length);
    const line = lineOfSite(site);
    const source = line === null ? null : (sources[(launch ?? 1) - 1].get(line) ?? null);
    return { launch, site, source };
  };
}
