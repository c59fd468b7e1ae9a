import { type ByteStore, clearTags, haveTags, type ValueTracer } from '../../machine/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import type { LaneTracer, TracedOperation } from '../../ptx/run/index.js';
import { laneRules } from '../rules/index.js';
import {
  byteSlots,
  decidedValue,
  lostValue,
  Losses,
  placeInSlot,
  RegisterFile,
  Trace,
  valueBytes,
  valueFormat,
} from '../trace/index.js';
import { WordOperation } from './bits-operation.js';
import { followBytes } from './byte-operation.js';
import { followExtreme } from './extremum.js';
import { followFloats } from './float-operation.js';
import { ProductRecorder } from './products.js';
import { type Recording, siteOf } from './recording.js';
import { followSelection } from './selection.js';
import { loseAll, tagInputs, type TracedInput } from './tensor-tags.js';
import { putInStore, UpdateRecorder } from './updates.js';

/** A recorder of a run: the machine tells it what happens, and it has what was made. */
export interface Recorder {
  readonly tracer: LaneTracer;
  readonly trace: Trace;
  readonly losses: Losses;
  /** The tensors of the launch, once it runs. */
  readonly stores: ReadonlyMap<string, ByteStore>;
  /** The tensors whose elements are values of their own, by the first operand of their values. */
  readonly inputs: readonly TracedInput[];
}

/** How the tensors of a launch begin, where not each is an input or a constant. */
export interface RecorderStart {
  /** The recorder of the launches before it in a chain: tensors that these have had keep what they mean. Null for none. */
  readonly before?: Pick<Recorder, 'trace' | 'losses' | 'stores' | 'inputs'> | null;
  /** What places of the program begin with; default nothing. */
  readonly where?: string;
  /** Tensors that hold nothing: a value that is made of their bytes is lost. */
  readonly unwritten?: ReadonlySet<string>;
}

/**
 * A recorder of the values of a launch.
 *
 * @param inputs the tensors whose elements are values; those of others are constants of the run: integers that say where
 *   something lies, and outputs
 * @param clustersEnded called when all clusters that have started have ended
 */
export function createRecorder(
  inputs: readonly TracedInput[],
  clustersEnded: (recorder: Recorder) => void = () => undefined,
  { before = null, where = '', unwritten = new Set() }: RecorderStart = {},
): Recorder {
  const [bf16, f32] = [valueFormat('bf16')!, valueFormat('f32')!];
  const { trace, losses } = before ?? { trace: new Trace(f32), losses: new Losses() };
  trace.beginLaunch(where);
  losses.beginLaunch(where);
  const left = before?.stores ?? new Map<string, ByteStore>();
  const known = before?.inputs ?? [];
  const all = [...known, ...inputs.filter(({ tensor }) => !left.has(tensor))];
  const products = new ProductRecorder(trace, losses);
  const updates = new UpdateRecorder(trace, losses);
  const stores = new Map<string, ByteStore>();
  const xorSums = new Map<number, readonly number[]>();
  let recording: Recording | null = null;

  const decide = (...[registers, reads, lanes, site]: Parameters<LaneTracer['decide']>): void => {
    if (taggedLanes(registers, reads, lanes).length > 0) losses.decide(site);
  };
  const values: ValueTracer = {
    product: (product) => products.product(product),
    unwritten: (store) => loseAll(store),
    update: (update) => updates.update(update),
    lose: (from, to, site) => {
      if (!haveTags(from.store, from.byte, from.bytes)) {
        clearTags(to.store, to.byte, to.bytes);
        return;
      }
      losses.lose(site);
      putInStore(to.store, to.byte, to.bytes, lostValue);
    },
  };
  const tracer: LaneTracer = {
    ...values,
    begin: (tensors) => {
      for (const [name, store] of tensors) {
        stores.set(name, store);
        if (left.has(name)) store.tags = left.get(name)!.tags;
        else if (unwritten.has(name)) loseAll(store);
      }
      tagInputs(trace, stores, all, known.length);
    },
    decide,
    loseRegisters: (...lost) => loseWritten(losses, lost),
    operation: (operation, run, memory) => {
      recording ??= { trace, losses, file: new RegisterFile(trace, memory), bf16, xorSums };
      return follow(recording, operation, run);
    },
    clustersEnded: () => clustersEnded(recorder),
  };
  const recorder: Recorder = { tracer, trace, losses, stores, inputs: all };
  return recorder;
}

/** Loses what an instruction writes where it reads values. */
function loseWritten(
  losses: Losses,
  [registers, { reads, writes }, lanes, site]: Parameters<LaneTracer['loseRegisters']>,
): void {
  const isLost = taggedLanes(registers, reads, lanes).length > 0;
  if (isLost) losses.lose(site);
  for (const slot of writes)
    for (const part of registers.parts(slot)) {
      const bytes = part.bytes.length / 32;
      for (let lane = 0; lane < 32; lane++)
        if (((lanes >>> lane) & 1) === 1)
          putInStore(part, lane * bytes, bytes, isLost ? lostValue : 0);
    }
}

/** The lanes of a mask in which one of some registers has a tag. */
function taggedLanes(
  ...[registers, slots, lanes]:
    | Parameters<LaneTracer['decide']>
    | [Parameters<LaneTracer['decide']>[0], Parameters<LaneTracer['decide']>[1], number]
): number[] {
  return Array.from({ length: 32 }, (_, lane) => lane).filter(
    (lane) =>
      ((lanes >>> lane) & 1) === 1 &&
      slots.some((slot) =>
        registers.parts(slot).some((part) => {
          const bytes = part.bytes.length / 32;
          return haveTags(part, lane * bytes, bytes);
        }),
      ),
  );
}

/** Follows an operation by the meaning of its instruction. */
function follow(
  recording: Recording,
  operation: LaneOperation,
  run: TracedOperation,
): TracedOperation {
  const { file } = recording;
  const { instruction } = operation;
  switch (instruction.meaning) {
    case 'moves':
      return followBytes(file, operation, run, null);
    case 'is': {
      const rules = laneRules(instruction);
      if (rules !== null) return followFloats(recording, operation, rules, run);
      const isDecision = makesPower.test(instruction.name);
      return isDecision
        ? forget(recording, operation, run, 'decides')
        : followOther(recording, operation, run);
    }
    case 'chooses': {
      const isSelection = /^(?:selp|slct)\./.test(instruction.name);
      if (isSelection) return followSelection(recording, operation, run);
      return followExtreme(recording, operation, run) ?? forget(recording, operation, run, 'loses');
    }
    case 'confirmed':
      return followBytes(file, operation, run, new WordOperation(recording, operation));
    case 'loses':
      return followOther(recording, operation, run);
    case 'decides':
      return forget(recording, operation, run, 'decides');
  }
}

/** Conversions to powers of two decide by their operand, as those to integers do. */
const makesPower = /^cvt\.[a-z.]*ue8m0x2\.(?:f32|bf16x2)$/;

/** Types of numbers in an instruction's name. */
const numberType = /\.(?:b?f(?:16|32|64)(?:x2)?|tf32|u?e\dm\d(?:x[24])?)(?:\.|$)/;

/** Follows an operation of which no rule is known: one on integers decides where no significand has a part in it. */
function followOther(
  recording: Recording,
  operation: LaneOperation,
  run: TracedOperation,
): TracedOperation {
  return numberType.test(operation.instruction.name)
    ? forget(recording, operation, run, 'loses')
    : followBytes(recording.file, operation, run, new WordOperation(recording, operation));
}

/** Runs an operation whose results are new: decided by its operands where those have tags, or lost. */
function forget(
  { file, losses }: Recording,
  operation: LaneOperation,
  run: TracedOperation,
  meaning: 'decides' | 'loses',
): TracedOperation {
  const site = siteOf(operation);
  const read = byteSlots(operation.sources).map(({ slot }) => slot);
  const written = byteSlots(operation.destinations).map(({ slot }) => slot);
  const tagged = (registers: number, lane: number): number => {
    let strongest = 0;
    for (const slot of read)
      for (let byte = 0; byte < valueBytes(slot); byte++) {
        const { first, stride } = placeInSlot(slot, byte);
        const value = file.tagAt(registers + first + stride * lane) >>> 3;
        if (value !== 0) strongest = value === decidedValue && strongest === 0 ? value : lostValue;
      }
    return strongest;
  };
  return (registers, lanes) => {
    const isTagged = read.some((slot) => file.isTagged(registers, slot));
    const results = new Uint32Array(32);
    if (isTagged)
      for (let lane = 0; lane < 32; lane++)
        if (((lanes >>> lane) & 1) === 1) {
          const strongest = tagged(registers, lane);
          if (strongest === 0) continue;
          if (meaning === 'decides') losses.decide(site);
          else {
            if (strongest === lostValue) losses.lose(site);
            results[lane] = strongest;
          }
        }
    run(registers, lanes);
    for (const slot of written) {
      if (!isTagged && !file.isTagged(registers, slot)) continue;
      const bytes = Math.max(valueBytes(slot), 4);
      for (let lane = 0; lane < 32; lane++)
        if (((lanes >>> lane) & 1) === 1)
          for (let byte = 0; byte < bytes; byte++) {
            const { first, stride } = placeInSlot(slot, byte);
            const tag = results[lane] === 0 ? 0 : results[lane] * 8 + byte;
            file.putTag(registers + first + stride * lane, tag);
          }
    }
  };
}
