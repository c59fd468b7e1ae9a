import { nearestName } from '../../words/index.js';
import {
  adversarialSchedulers,
  inOrderScheduler,
  randomScheduler,
  timedScheduler,
  type Scheduler,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';

/** How each cluster of a run is scheduled. */
export interface ChosenSchedule {
  /** As --schedule takes it. */
  readonly name: string;
  /** Whether its times are clocks. */
  readonly isTimed: boolean;
  /** A new scheduler for a cluster: schedulers remember what they chose. */
  readonly create: (cluster: number) => Scheduler;
}

/** The name of a schedule as one word. */
function oneWord(name: string): string {
  return name.replaceAll(' ', '-');
}

const mostSeed = 2 ** 32 - 1;

/** The names of the adversarial schedules of so many warps, as --schedule takes them. */
export function adversarialNames(warps: number): string[] {
  return adversarialSchedulers(warps).map(({ name }) => oneWord(name));
}

/**
 * The schedule of a name for CTAs of so many warps. Cluster n of `random:<seed>` has the seed plus n.
 * @throws RequestError for an unknown name, which names the nearest, and for a bad seed
 */
export function findSchedule(text: string, warps: number): ChosenSchedule {
  if (text === 'in-order') return { name: text, isTimed: false, create: () => inOrderScheduler() };
  if (text === 'timed') return { name: text, isTimed: true, create: () => timedScheduler() };
  const [kind, seedText] = text.split(':', 2);
  if (kind === 'random') {
    const seed = Number(seedText);
    if (!/^\d+$/.test(seedText ?? '') || seed > mostSeed)
      throw new RequestError(
        `--schedule is ${JSON.stringify(text)}; give random:<seed>, a whole number below 2^32`,
      );
    const create = (cluster: number) => randomScheduler((seed + cluster) % (mostSeed + 1));
    return { name: `random:${seed}`, isTimed: false, create };
  }
  const name = oneWord(text);
  const adversarial = adversarialNames(warps);
  const index = adversarial.indexOf(name);
  if (index === -1) {
    const nearest = nearestName(name, ['in-order', 'timed', 'random:1', ...adversarial]);
    throw new RequestError(
      `no schedule ${JSON.stringify(text)}; ${nearest === null ? 'flashproof emulate list --machine names them' : `the nearest is ${nearest}`}`,
    );
  }
  const create = () => adversarialSchedulers(warps)[index];
  return { name, isTimed: false, create };
}
