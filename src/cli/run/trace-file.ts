import type { LaunchTracer } from '../../jobs/index.js';
import { atomicWriteFile } from '../../io/index.js';
import {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type ChromeTraceSection,
} from '../../machine/index.js';

/** Events that a trace has at most, which take some 300 MB: viewers open no larger ones. */
const mostEvents = 2 ** 20;

/** A run's trace, kept until it is written. */
export interface LaunchTrace extends LaunchTracer {
  /**
   * Writes the file, in Chrome's trace format: a CTA is a process, its warps and units are threads.
   *
   * @returns a description of its contents, for a reader
   * @throws RequestError when it cannot be written
   */
  readonly write: (path: string) => Promise<string>;
}

/**
 * A trace without events yet.
 *
 * @param most events that are kept: those after them are counted only
 */
export function createLaunchTrace(most = mostEvents): LaunchTrace {
  let head: Uint8Array | null = null;
  let about: Parameters<LaunchTracer['begin']>[0] = { ctas: 1, isTimed: false, schedule: '' };
  const chunks: Uint8Array[] = [];
  let current: { readonly cluster: number; readonly section: ChromeTraceSection } | null = null;
  let [events, clusters] = [0, 0];

  function flush(): void {
    if (current === null) return;
    for (const chunk of current.section.chunks()) chunks.push(chunk);
    current = null;
  }
  function sectionOf(cluster: number): ChromeTraceSection {
    if (current?.cluster === cluster) return current.section;
    flush();
    clusters++;
    const { ctas, isTimed } = about;
    const warpName = (warp: number) => `warp ${warp}`;
    const section = createChromeTraceSection({ cluster, ctas, warpName, isTimed });
    current = { cluster, section };
    return section;
  }

  return {
    begin: (given) => {
      about = given;
      head = chromeTraceHead({ tool: 'flashproof', schedule: about.schedule }, about.isTimed);
    },
    add: (cluster, event) => {
      if (events++ < most) sectionOf(cluster).add(event);
    },
    write: async (path) => {
      flush();
      await atomicWriteFile(path, [...(head === null ? [] : [head]), ...chunks, chromeTraceTail()]);
      const unit = clusters === 1 ? '1 cluster' : `${clusters.toLocaleString('en-US')} clusters`;
      const kept =
        events <= most
          ? ''
          : `; it holds the first ${most.toLocaleString('en-US')} of ${events.toLocaleString('en-US')} events`;
      return `trace of ${unit} in ${path} (open it at https://ui.perfetto.dev)${kept}`;
    },
  };
}
