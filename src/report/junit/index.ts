export { renderJunit } from './audit-junit.js';
export { renderCheckJunit } from './check-junit.js';
export { renderAuditsJunit } from './audits-junit.js';
