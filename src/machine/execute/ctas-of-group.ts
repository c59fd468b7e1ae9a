import type { CtaGroup } from '../instruction.js';
import { report, type CtaState, type MachineState, type WarpState } from '../state.js';

/** The CTAs that an instruction of a group works on; reports a pair where there is none. */
export function ctasOfGroup(
  machine: MachineState,
  warp: WarpState,
  group: CtaGroup,
): readonly CtaState[] | null {
  const ctas = group === 1 ? [warp.cta] : machine.ctas;
  if (ctas.length === group) return ctas;
  report(machine, warp, 'instruction-shape', `cta_group::2 in a cluster of one CTA`);
  return null;
}
