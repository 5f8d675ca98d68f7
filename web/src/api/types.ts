/** Short names for the wire's types, all of them generated from the OpenAPI document. */
import type { components } from './schema';

export type Schemas = components['schemas'];
export type Job = Schemas['Job'];
export type JobSummary = Schemas['JobSummary'];
export type JobState = Schemas['JobState'];
export type NewJob = Schemas['NewJob'];
export type JobChecked = Schemas['JobChecked'];
export type Ask = Schemas['Ask'];
export type Quote = Schemas['Quote'];
export type Quoted = Schemas['Quoted'];
export type QuoteAsk = Schemas['QuoteAsk'];
export type MenuLine = Schemas['MenuLine'];
export type CounterOffers = Schemas['CounterOffers'];
export type Hold = Schemas['Hold'];
export type Market = Schemas['Market'];
export type PricePoint = Schemas['PricePoint'];
export type Me = Schemas['Me'];
export type Event = Schemas['Event'];
export type Node = Schemas['Node'];
export type Booking = Schemas['Booking'];
export type Utilisation = Schemas['Utilisation'];
export type LogLine = Schemas['LogLine'];
export type MetricPoint = Schemas['MetricPoint'];
export type TimelineLine = Schemas['TimelineLine'];
export type Explanation = Schemas['Explanation'];
