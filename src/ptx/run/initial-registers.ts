import { clusterAddress, type ByteStore } from '../../machine/index.js';
import { moveToRegister, type Slot, type WarpRegisters } from '../instructions/index.js';
import type { Program, ThreadPlace } from '../program/index.js';

const warpLanes = 32;

/** Writes the initial values of a warp into its registers: special registers, parameters, addresses. */
export function setInitialRegisters(
  { specialRegisters, parameterRegisters, sharedAddresses }: Program,
  registers: WarpRegisters,
  warp: {
    /** Place of the warp's first thread. */
    readonly place: ThreadPlace;
    readonly rank: number;
    /** The kernel's parameter space. */
    readonly parameters: ByteStore;
  },
): void {
  for (const { slot, register } of specialRegisters)
    for (let lane = 0; register.value !== null && lane < warpLanes; lane++) {
      const value = register.value({ ...warp.place, lane });
      setNumber(registers, slot, lane, slot.width === 'pred' && value !== 0 ? 0xffffffff : value);
    }
  for (const { slot, address } of sharedAddresses)
    for (let lane = 0; lane < warpLanes; lane++)
      setNumber(registers, slot, lane, clusterAddress(warp.rank, address));
  const store = warp.parameters;
  for (const { slot, ...place } of parameterRegisters)
    moveToRegister(registers, slot, { store, stride: 0, ...place }, -1);
}

function setNumber(registers: WarpRegisters, slot: Slot, lane: number, value: number): void {
  setBits(registers, slot, lane, BigInt(value));
}

function setBits(registers: WarpRegisters, slot: Slot, lane: number, bits: bigint): void {
  const words = registers.words(slot);
  const word = (i: number) => Number(BigInt.asUintN(32, bits >> BigInt(32 * i)));
  if (slot.width !== 64 && slot.width !== 128) {
    words[lane] = word(0);
    return;
  }
  words[2 * lane] = word(0);
  words[2 * lane + 1] = word(1);
  if (slot.width === 64) return;
  words[2 * (warpLanes + lane)] = word(2);
  words[2 * (warpLanes + lane) + 1] = word(3);
}
