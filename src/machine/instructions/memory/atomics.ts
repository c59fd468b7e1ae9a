import { allLanes, siteOf, type Fragment, type InstructionOf } from '../../isa/index.js';
import { createByteStore, moveBytes, type BytePlace, type ByteStore } from '../../memory/index.js';
import { report, type MachineState } from '../../state.js';
import {
  alwaysReady,
  issueSlot,
  noRegisters,
  type InstructionRecord,
  type InstructionRecords,
  type Touched,
} from '../record.js';
import { atomicBits, evaluateAtomic, hasAtomic, meaningOfAtomic } from './atomic-operations.js';
import { informLanes, tellLanes } from './follow-lanes.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import { createTrafficCounter, loadPlace, registersOf, strengthOf } from './loads-and-stores.js';

type Op = 'atom' | 'red';
type Atomic = InstructionOf<Op>;

const wordBits = 32n;
const wordBytes = 4;

/** The bits of an element in registers, which may be half of one. */
function elementOf(registers: Uint32Array, first: number, element: number, bits: number): bigint {
  if (bits === 16)
    return BigInt((registers[first + (element >> 1)] >>> (16 * (element & 1))) & 0xffff);
  const words = bits / 32;
  let value = 0n;
  for (let i = words - 1; i >= 0; i--)
    value = (value << wordBits) | BigInt(registers[first + element * words + i]);
  return value;
}

function putElement(registers: Uint32Array, element: number, bits: number, value: bigint): void {
  if (bits === 16) {
    const shift = 16 * (element & 1);
    const word = registers[element >> 1];
    registers[element >> 1] = (word & ~(0xffff << shift)) | (Number(value) << shift);
    return;
  }
  const words = bits / 32;
  for (let i = 0; i < words; i++)
    registers[element * words + i] = Number((value >> (wordBits * BigInt(i))) & 0xffffffffn);
}

/** The accesses of an atomic, which are strong: relaxed where nothing else is specified. */
const touched: Touched<Op>['memory'] = (machine, cta, instruction, visit) =>
  visitPlaces(
    machine,
    cta,
    { places: instruction, use: 'updates', strong: strengthOf(instruction, true) },
    visit,
  );

const operands = ({ operands, compared }: Atomic): readonly Fragment[] =>
  compared === null ? [operands] : [operands, compared];

/** Tells the tracer of a lane's operation; its operands lie at byte `at` of their registers. */
function traceAtomic(
  { tracer }: MachineState,
  instruction: Atomic,
  { old, place, at }: { readonly old: ByteStore; readonly place: BytePlace; readonly at: number },
): void {
  const { op, operation, type, operands, compared, bytes } = instruction;
  tracer?.update({
    mnemonic: `${op}.${operation}.${type}`,
    site: siteOf(instruction),
    operation,
    type,
    old,
    operand: { store: operands, byte: at },
    compared: compared === null ? null : { store: compared, byte: at },
    next: { store: place.store, byte: place.offset },
    bytes,
  });
}

function record(op: Op): InstructionRecord<Op> {
  return {
    ready: alwaysReady,
    isWait: false,
    reads: { registers: operands, memory: touched },
    writes: {
      registers: op === 'atom' ? ({ result }) => [result!] : noRegisters,
      memory: touched,
    },
    unit: issueSlot,
    meaning: ({ operation, type }) => meaningOfAtomic(operation, type),
    describe: ({ space, operation, type, order, scope }) => ({
      space,
      operation,
      type,
      order,
      scope,
    }),
    execute: (machine, warp, instruction) => {
      const { operation, type, elements, bytes, compared, result } = instruction;
      const bits = atomicBits[type];
      if (!hasAtomic(operation, type)) {
        report(machine, warp, 'instruction-shape', `there is no ${op}.${operation}.${type}`);
        return 'refused';
      }
      const perLane = registersOf(bytes);
      const laneBytes = perLane * wordBytes;
      const [old, next] = [createByteStore(laneBytes), createByteStore(laneBytes)];
      const traffic = createTrafficCounter(warp.cta, (name) => `${op} → ${name}`);
      // Lanes take turns, as in atomic operations; the hardware chooses the order.
      forEachPlace(machine, warp, instruction, 'updates', (place, lane) => {
        const evaluate = evaluateAtomic(operation, type, place.space === 'shared')!;
        loadPlace(place, bytes, old, 0);
        next.words.fill(0);
        for (let element = 0; element < elements; element++) {
          const before = elementOf(old.words, 0, element, bits);
          const operand = elementOf(instruction.operands.words, lane * perLane, element, bits);
          const expected =
            compared === null ? 0n : elementOf(compared.words, lane * perLane, element, bits);
          putElement(next.words, element, bits, evaluate(before, operand, expected));
        }
        moveBytes(next, 0, place.store, place.offset, bytes);
        traceAtomic(machine, instruction, { old, place, at: lane * laneBytes });
        if (result !== null) moveBytes(old, 0, result, lane * laneBytes, laneBytes);
        traffic.add(place, bytes);
      });
      traffic.end();
      tellLanes(machine, warp, allLanes);
      informLanes(machine, warp, allLanes);
    },
  };
}

/**
 * Atomic operations and reductions of lanes, on shared and global memory. Source: PTX ISA, `atom`, `red`.
 */
export const atomicRecords: InstructionRecords<Op> = { atom: record('atom'), red: record('red') };
