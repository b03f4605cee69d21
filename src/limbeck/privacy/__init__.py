"""The language of the walls, all of it public: what is known of the data, what may be asked, and what it costs."""
