import { report, type MachineState, type WarpgroupProgress, type WarpState } from '../state.js';

/** Warps of a warpgroup: four in a row, of which the first has a number that is a multiple of four. */
export const warpgroupWarps = 4;

/** A warpgroup of which no warp has done anything. */
function createProgress(warps: number): WarpgroupProgress {
  return { executed: Array.from({ length: warps }, () => 0), open: [], closed: 0 };
}

/**
 * A warp executes an instruction of its warpgroup: all four have to execute the same ones in the same order, or nobody knows
 * what they do. Reports that it is another than that of a warp before it, and that there are fewer than four. Source: PTX ISA,
 * `.aligned` of `wgmma` and `setmaxnreg`.
 *
 * @param what the instruction, by what has to be the same of it
 */
export function executeTogether(machine: MachineState, warp: WarpState, what: string): void {
  const { cta, index, name } = warp;
  const group = Math.floor(index / warpgroupWarps);
  const warps = Math.min(warpgroupWarps, cta.warps.length - group * warpgroupWarps);
  let progress = cta.warpgroups.get(group);
  if (progress === undefined) cta.warpgroups.set(group, (progress = createProgress(warps)));
  if (warps < warpgroupWarps)
    report(machine, warp, 'convergence', `a warpgroup has ${warpgroupWarps} warps, this ${warps}`);
  const { executed, open } = progress;
  const number = executed[index % warpgroupWarps]++;
  const step = open[number - progress.closed];
  if (step === undefined) open.push({ what, who: name });
  else if (step.what !== what)
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
}

/** All warps have ended: reports instructions that not all warps of a warpgroup have executed. */
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
