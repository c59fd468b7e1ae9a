export {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type ChromeTraceSection,
  type TracedCluster,
} from './chrome-trace.js';
export { trackOf, type Track } from './tracks.js';
