import { RealDomain } from '../../src/meaning/domains/index.js';
import { createRecorder, type Recorder, valueInStore } from '../../src/meaning/record/index.js';
import { valueFormat } from '../../src/meaning/trace/index.js';
import { parsePtx } from '../../src/ptx/syntax/index.js';
import { runLaunch } from '../../src/ptx/run/index.js';
import { type BodyOptions, launchBody } from '../ptx/run/run-body.js';

/** What a thread's element of `out` stands for. */
export interface FollowedElement {
  readonly value: number;
  readonly bits: bigint;
  /** The number that the bits are, and the real value; NaN where there is none. */
  readonly number: number;
  readonly real: number;
}

/** A body that has run with the elements of `in` as values. */
export interface FollowedBody {
  readonly recorder: Recorder;
  readonly elements: readonly FollowedElement[];
}

const threads = 64;

/** The formats of `in` and `out`. */
interface FollowedFormats {
  readonly input: string;
  readonly output: string;
  /** Values that are made before the run, so that the tags of its own have all their bytes; default none. */
  readonly valuesBefore?: number;
}

/** Runs the body of a kernel (`launchBody`), following the elements of `in`; those of `out` have a format, one for each thread. */
export async function followBody(
  body: string,
  input: Uint8Array,
  formats: FollowedFormats,
  options: BodyOptions = {},
): Promise<FollowedBody> {
  const format = valueFormat(formats.output)!;
  const { bytes } = format;
  const output = new Uint8Array(bytes * threads);
  const { ptx, launch } = await launchBody(body, { output, ...options, input });
  const recorder = createRecorder([{ tensor: 'in', format: valueFormat(formats.input)! }]);
  for (let i = 0; i < (formats.valuesBefore ?? 0); i++) recorder.trace.add(0, 0, 0, 0, 0);
  runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx', tracer: recorder.tracer });
  const { trace } = recorder;
  const real = new RealDomain(trace);
  const store = recorder.stores.get('out')!;
  const values = Array.from({ length: threads }, (_, thread) =>
    valueInStore(trace, store, bytes * thread, bytes),
  );
  real.extend();
  const elements = values.map((value, thread): FollowedElement => {
    const own = store.bytes.subarray(bytes * thread, bytes * (thread + 1));
    const bits = own.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    const number = format.decode(Number(bits & 0xffffffffn), Number(bits >> 32n));
    return { value, bits, number, real: real.high[value] };
  });
  return { recorder, elements };
}
