export { RealDomain } from './real.js';
