export {
  chromeTraceHead,
  chromeTraceTail,
  createChromeTraceSection,
  type ChromeTraceSection,
  type TracedCluster,
} from './chrome-trace.js';
