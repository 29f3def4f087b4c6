"""The mathematics of training on episodes: of MiRA (milestones → potential critic → shaped reward → regression policy
update), and of what it is compared with: WebRL, advantage-weighted regression, DigiRL, filtered behaviour cloning and
M-GRPO. :mod:`training.loop.arms` says which arm uses what.

    progress            progress labels of the potential critic
    advantages          shaped rewards, returns, advantages and value targets of one episode
    targets             these for all rows of a phase, by its settings
    credit              steps of a failure that count, baselines of several attempts, weights of steps
    losses              losses of the critics and of the actor
    replay              the replay buffer: past successes in a band of perplexity
    episode_rewards     M-GRPO: rewards of whole episodes
    group_advantages    M-GRPO: groups of attempts, their advantages, weights of rows
    clipped_surrogate   M-GRPO: the loss

Functions here are pure: they load no model, read no file and draw no random number. Beside them are the records of
their settings and counts, and :class:`training.mira.replay.ReplayBuffer`, which keeps successes over the phases.
"""
