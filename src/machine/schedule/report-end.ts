import { siteOf } from '../isa/index.js';
import { mayComeLate, operationKinds } from '../ordering/index.js';
import { type CtaState, hasExited, type MachineState } from '../state.js';
import { waitsFor } from './scheduler.js';

/**
 * Reports errors once no step is left: warps that wait for one another, and tensor memory that nobody
 * has freed. Returns whether all warps came to their end.
 */
export function reportEnd(machine: MachineState): boolean {
  const { ctas, findings, step } = machine;
  const agents = [...ctas.flatMap(({ warps }) => warps), ...machine.strands];
  const blocked = agents.filter(({ current }) => current !== null);
  if (blocked.length > 0) {
    const waits = blocked.map(
      (warp) => `${warp.name} at "${siteOf(warp.current)}" waits for ${waitsFor(machine, warp)}`,
    );
    findings.add({
      kind: 'deadlock',
      cta: blocked[0].cta.rank,
      step,
      message: `deadlock: ${waits.join('; ')}`,
      accesses: blocked.map(({ name, current }) => ({ who: name, site: siteOf(current), step })),
    });
    return false;
  }
  for (const { rank, tensor } of ctas) {
    const columns = tensor.blocks().reduce((sum, block) => sum + block.columns, 0);
    if (columns > 0)
      findings.add({
        kind: 'leaked-tensor-memory',
        cta: rank,
        step,
        message: `CTA ${rank} ends with ${columns} columns of tensor memory allocated`,
      });
  }
  return true;
}

/**
 * Reports operations that are still under way when the last warp of their CTA has ended, since nobody
 * waited for them. A bulk store may be under way: it needs nothing of the CTA once it has read its
 * source.
 */
export function reportUnfinished({ pending, findings, model, step }: MachineState): void {
  for (const { warp, site, kind, name, order, reaches } of pending) {
    // The tracker decides, once all warps have ended, whether only a commit is late.
    const isLeft = order !== null && mayComeLate(model, order.tracked, order.clock);
    const mayOutlive = (cta: CtaState) =>
      operationKinds[kind].mayOutliveCta || (isLeft && cta === warp.cta);
    for (const { rank } of reaches.filter((cta) => hasExited(cta) && !mayOutlive(cta)))
      findings.add({
        kind: 'unfinished-operation',
        cta: rank,
        step,
        message: `${warp.name}, ${site}: ${name} is under way at the end of the CTA`,
        accesses: [{ who: warp.name, site, step }],
      });
  }
}
