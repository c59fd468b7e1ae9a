import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from 'node:os';

/** What benchmark numbers depend on. */
export interface Machine {
  readonly cpu: string;
  /** Cores this process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly platform: string;
  /** Mean number of runnable processes over the last minute; above 0 others compete. 0 on Windows. */
  readonly load: number;
}

/** This machine, now. */
export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.version,
    platform: `${platform()} ${arch()}`,
    load: loadavg()[0],
  };
}
