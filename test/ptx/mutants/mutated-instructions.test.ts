import { expect, it } from 'vitest';
import {
  barrierInstructions,
  memoryInstructions,
  tensorInstructions,
} from '../../../src/ptx/instructions/index.js';
import { isAccess, mutatedInstruction } from '../../../src/ptx/mutants/mnemonics.js';

/** Instructions that are neither changed nor passed by what is moved, and why. */
const others: Readonly<Record<string, string>> = {
  bar: 'bar.sync and bar.arrive are; bar.red gives values beside',
  barrier: 'as bar',
  createpolicy: 'a hint',
  prefetch: 'a hint',
  prefetchu: 'a hint',
  applypriority: 'a hint',
  'cp.async.bulk.prefetch': 'a hint',
  'cp.async.bulk.prefetch.tensor': 'a hint',
  'tcgen05.relinquish_alloc_permit': 'orders allocations alone',
  'mbarrier.pending_count': 'reads a state that an arrival has given',
  setmaxnreg: 'orders nothing',
  'tensormap.replace.tile': 'writes a tensor map, and orders nothing',
  'clusterlaunchcontrol.try_cancel.async': 'orders nothing',
};

it('every instruction that others see is changed, is an access, or orders nothing', () => {
  const names = [...barrierInstructions, ...memoryInstructions, ...tensorInstructions].map(
    ({ name }) => name,
  );
  const neither = names.filter((name) => mutatedInstruction(name) === null && !isAccess(name));
  expect(neither.sort()).toEqual(Object.keys(others).sort());
});

/** Rows of forms that other rows change alike. */
const alike: Readonly<Record<string, string>> = {
  'barrier.cluster.arrive.release': 'barrier.cluster.arrive',
  'ld.global.nc': 'ld',
};

it('a row is changed by one of its own name, or as one that it is a form of', () => {
  const rows = [...barrierInstructions, ...memoryInstructions, ...tensorInstructions];
  const others = rows.flatMap(({ name }) => {
    const row = mutatedInstruction(name);
    return row === null || row.name === name ? [] : [[name, row.name] as const];
  });
  expect(Object.fromEntries(others)).toEqual(alike);
});

it('accesses to memory of a lane alone, and to what nobody writes, are passed over', () => {
  expect(['ld.global.b32', 'st.shared.b8', 'tcgen05.mma.cta_group::1'].map(isAccess)).toEqual(
    Array(3).fill(true),
  );
  const unseen = ['ld.local.b32', 'ld.const.b32', 'st.param.b32', 'bar.sync', 'mbarrier.arrive'];
  expect(unseen.map(isAccess)).toEqual(Array(5).fill(false));
});

it('an instruction belongs to the row with the longest name', () => {
  const rowOf = (mnemonic: string) => mutatedInstruction(mnemonic)?.name;
  expect(rowOf('fence.proxy.async.shared::cta')).toBe('fence.proxy.async');
  expect(rowOf('fence.acq_rel.gpu')).toBe('fence');
  expect(rowOf('cp.async.bulk.wait_group.read')).toBe('cp.async.bulk.wait_group.read');
  expect(rowOf('barrier.cluster.arrive.relaxed.aligned')).toBe('barrier.cluster.arrive.relaxed');
  expect(rowOf('mbarrier.arrive.expect_tx.shared::cta.b64')).toBe('mbarrier.arrive.expect_tx');
  expect(rowOf('bar.red.popc.u32')).toBeUndefined();
});
