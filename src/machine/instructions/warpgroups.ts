import {
  report,
  type AsynchronousOperation,
  type GroupStep,
  type MachineState,
  type WarpgroupProgress,
  type WarpState,
} from '../state.js';

/** Warps of a warpgroup: four in a row, the first at a multiple of four. */
export const warpgroupWarps = 4;

/** Progress of a warpgroup before its first instruction. */
function createProgress(warps: number): WarpgroupProgress {
  return { executed: Array.from({ length: warps }, () => 0), open: [], closed: 0 };
}

/**
 * Records that a warp executes an instruction of its warpgroup: all four have to execute the same ones in the same order, or
 * their effect is undefined. Reports an instruction that differs from that of an earlier warp, and a group of fewer than four.
 * Source: PTX ISA, `.aligned` of `wgmma` and `setmaxnreg`.
 *
 * @param what the parts of the instruction that have to be the same
 * @returns the group's record of the instruction; null where it differs from that of the others
 */
export function executeTogether(
  machine: MachineState,
  warp: WarpState,
  what: string,
): GroupStep | null {
  const { cta, index, name } = warp;
  const group = Math.floor(index / warpgroupWarps);
  const warps = warpsOfGroup(warp);
  let progress = cta.warpgroups.get(group);
  if (progress === undefined) cta.warpgroups.set(group, (progress = createProgress(warps)));
  if (warps < warpgroupWarps)
    report(machine, warp, 'convergence', `a warpgroup has ${warpgroupWarps} warps, this ${warps}`);
  const { executed, open } = progress;
  const number = executed[index % warpgroupWarps]++;
  const known = open[number - progress.closed];
  const step: GroupStep = known ?? { what, who: name, parts: [] };
  const isSame = step.what === what;
  if (known === undefined) open.push(step);
  else if (!isSame)
    report(
      machine,
      warp,
      'convergence',
      `comes to ${what} where ${step.who} of its warpgroup has come to ${step.what}`,
    );
  if (Math.min(...executed) > progress.closed) {
    open.shift();
    progress.closed++;
  }
  return isSame ? step : null;
}

/** The warps of a warp's group: four, or fewer at the end of the CTA. */
function warpsOfGroup({ cta, index }: WarpState): number {
  const first = Math.floor(index / warpgroupWarps) * warpgroupWarps;
  return Math.min(warpgroupWarps, cta.warps.length - first);
}

/**
 * Records that a warp has issued its part of an operation of its warpgroup: with the last part it is under way, and all of them are
 * performed in one step. Under memory models with `warpgroupOrder` it comes after the earlier events of each of the warps, and a warp
 * that knows its part to be complete knows all parts to be.
 *
 * @param step null for an instruction that differs from that of the other warps: then the part stands alone
 */
export function joinOperation(
  machine: MachineState,
  step: GroupStep | null,
  part: AsynchronousOperation,
): void {
  const parts = step === null ? null : step.parts;
  if (parts === null) {
    machine.pending.push(part);
    return;
  }
  parts.push(part);
  if (parts.length < warpsOfGroup(part.warp)) return;
  part.partners = parts.slice(0, -1);
  part.after = parts.flatMap(({ after }) => after).filter(({ isDone }) => !isDone);
  if (machine.model.warpgroupOrder) machine.tracker?.unite(parts.map(({ order }) => order!));
  machine.pending.push(part);
}

/** Leaves out a warp's part of an operation of its warpgroup: the parts of the others stand alone. */
export function leaveOperation(machine: MachineState, step: GroupStep | null): void {
  if (step === null || step.parts === null) return;
  machine.pending.push(...step.parts);
  step.parts = null;
}

/** Reports, once all warps have ended, instructions that not all warps of a warpgroup have executed. */
export function reportApart({ ctas, findings, step }: MachineState): void {
  for (const cta of ctas)
    for (const [group, { executed, open }] of cta.warpgroups) {
      if (open.length === 0) continue;
      const most = Math.max(...executed);
      const first = group * warpgroupWarps;
      const missing = executed.flatMap((count, i) => (count < most ? [cta.warps[first + i]] : []));
      const [{ what, who }] = open;
      const names = missing.map(({ name }) => name).join(', ');
      findings.add({
        kind: 'convergence',
        cta: cta.rank,
        step,
        message: `${who} executes ${what}, which all warps of its warpgroup have to, and not ${names}`,
        accesses: [{ who, site: what, step }],
      });
    }
}
