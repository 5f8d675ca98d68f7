/**
 * Who is signed in. The session's secret is a cookie that scripts cannot read; the second secret
 * of every change comes with the login and again whenever the page asks who it is.
 */
import { api, call, setCsrf, whenSignedOut } from './client';
import { live } from './live.svelte';
import { asProblem, type ProblemError } from './problem';
import type { Me } from './types';

/** What a job of one's own does comes in bursts, and so do the charges for it. */
const AGAIN_MS = 1000;

class Session {
  /** `undefined` while it is not known, `null` for nobody. */
  me = $state<Me | null | undefined>(undefined);
  /** Why it is not known. */
  problem = $state.raw<ProblemError | undefined>(undefined);

  /** Asks the server who this is. */
  async load(): Promise<void> {
    try {
      this.enter(await call(api.GET('/api/v1/sessions')));
      this.problem = undefined;
    } catch (thrown) {
      const problem = asProblem(thrown);
      if (problem.status === 401) this.leave();
      else this.problem = problem;
    }
  }

  /** Keeps balance and rights true until the returned function is called. */
  follow(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void this.renew();
      }, AGAIN_MS);
    };
    const quiet = live.listen((event) => {
      if (event.event === 'account_changed' || event.user === this.me?.name) soon();
    });
    const back = live.onComeback(soon);
    return () => {
      quiet();
      back();
      clearTimeout(timer);
    };
  }

  /** Asks again who this is; where no answer comes, what is shown stays. */
  private async renew(): Promise<void> {
    const asked = this.me;
    try {
      const fresh = await call(api.GET('/api/v1/sessions'));
      // Field by field: what did not change makes nothing load again.
      if (this.me && this.me === asked) Object.assign(this.me, fresh);
    } catch (thrown) {
      if (asProblem(thrown).status === 401) this.leave();
    }
  }

  async signIn(user: string, password: string): Promise<void> {
    const body = { user, password, cookie: true };
    const logged = await call(api.POST('/api/v1/sessions', { body }));
    setCsrf(logged.csrf ?? undefined);
    this.enter(logged.me);
  }

  async signOut(): Promise<void> {
    try {
      await call(api.DELETE('/api/v1/sessions'));
    } finally {
      this.leave();
    }
  }

  /** Takes the place of a one-time password, or of any other. */
  async changePassword(old: string, fresh: string): Promise<void> {
    await call(api.PUT('/api/v1/password', { body: { old, new: fresh } }));
    // The session of a one-time password is good for this alone.
    if (this.me) await this.signIn(this.me.name, fresh);
  }

  get administers(): boolean {
    return this.me?.role === 'administrator';
  }

  get headsGroup(): boolean {
    return this.me?.role === 'administrator' || this.me?.role === 'group_administrator';
  }

  leave(): void {
    setCsrf(undefined);
    live.stop();
    this.me = null;
  }

  private enter(me: Me): void {
    if (me.csrf) setCsrf(me.csrf);
    this.me = me;
    if (!me.must_change_password) live.start();
  }
}

export const session = new Session();
whenSignedOut(() => session.leave());
